// Whether the store is the one its nodes have seen, as operators are shown it and confirm it.

import { Type, type Static } from 'typebox'
import { reasonForDoubt, type Continuity, type Doubt } from '#domain/continuity/continuity.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { orNull, ReasonRequest } from '#wire/core/shapes.ts'

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
  /** Of the newest entry there was when the first of the replicas started: what was done after that may be forgotten. */
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
const ConfirmStoreAnswer = Type.Object({ lineage: Type.Integer(), confirmed: DoubtView })
export type ConfirmStoreAnswer = Static<typeof ConfirmStoreAnswer>

export const continuityView = ({ lineage, doubt }: Continuity): Static<typeof ContinuityView> => ({
  lineage,
  doubt: doubt === null ? null : doubtView(doubt),
})

export const doubtView = (doubt: Doubt): DoubtView => ({
  since: isoTime(doubt.sinceMs),
  node: doubt.node,
  why: doubt.why,
  in_words: reasonForDoubt(doubt),
  chain: doubt.chain,
  seen: doubt.sequence,
  ours: doubt.ours,
  seen_lineage: doubt.lineage,
  missing: doubt.ours !== null && doubt.sequence > doubt.ours ? doubt.sequence - doubt.ours : null,
  newest_entry: isoTimeOrNull(doubt.newestEntryMs),
})

export const storeApi = {
  continuity: endpoint({
    method: 'GET',
    path: '/v1/store/continuity',
    access: 'viewer',
    summary: 'Whether nodes have seen more of the journal than this store has',
    answer: ContinuityView,
  }),
  confirm: endpoint({
    method: 'POST',
    path: '/v1/store/confirm',
    access: 'platform-admin',
    summary: 'Takes a store that is an older copy for what it is: issuing goes on',
    body: ReasonRequest,
    answer: ConfirmStoreAnswer,
  }),
}
