// Whether the store is the one its nodes have seen, as operators are shown it and confirm it.

import { Type, type Static } from 'typebox'
import { orNull } from '#wire/core/shapes.ts'

export const DoubtView = Type.Object({
  since: Type.String(),
  /** The node that showed it first. */
  node: Type.String(),
  why: Type.Union([Type.Literal('lineage'), Type.Literal('missing'), Type.Literal('other')]),
  in_words: Type.String(),
  chain: Type.String(),
  /** How far nodes have seen that chain, and how far it was here when that was noticed; null: not here at all. */
  seen: Type.Integer(),
  ours: orNull(Type.Integer()),
  seen_lineage: Type.Integer(),
  /** Entries that nodes have seen behind our last; null where the copy has gone on past them. */
  missing: orNull(Type.Integer()),
  /** Of the newest entry there was when the first of the planes started: what was done after that may be forgotten. */
  newest_entry: orNull(Type.String()),
})
export type DoubtView = Static<typeof DoubtView>

/** `GET /v1/store/continuity` */
export const ContinuityView = Type.Object({
  /** How often a store that had lost something was confirmed. */
  lineage: Type.Integer(),
  doubt: orNull(DoubtView),
})

/** `POST /v1/store/confirm` */
export const ConfirmStoreAnswer = Type.Object({ lineage: Type.Integer(), confirmed: DoubtView })
export type ConfirmStoreAnswer = Static<typeof ConfirmStoreAnswer>
