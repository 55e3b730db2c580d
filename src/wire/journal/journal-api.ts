// The journal, as operators read it and have it verified.

import { Type } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NodeIdText, orNull, text } from '#wire/core/shapes.ts'

export const EntryView = Type.Object({
  cursor: Type.String(),
  /** When it was written, as `atMs` of the entry. Left out by planes before 0.5. */
  at: Type.Optional(Type.String()),
  hash: Type.String(),
  /** The entry as it was hashed. */
  entry: recordOf(Type.String(), Type.Unknown()),
})
const JournalQueryBody = Type.Object(
  {
    /** A cursor names the place in every chain. */
    after: Type.Optional(text(8000)),
    last: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    node: Type.Optional(NodeIdText),
    type: Type.Optional(text(64)),
    /** RFC 3339; not with `last`. Times are those of the clocks of the planes that wrote the entries. */
    since: Type.Optional(text(40)),
    until: Type.Optional(text(40)),
    /** `operator:alice`, or `alice`. */
    actor: Type.Optional(text(128)),
    /** Only what belongs to one story: a recovery, a task. */
    correlation: Type.Optional(text(128)),
    /** How long to wait for a new entry: how `journal follow` works. */
    wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 30_000 })),
  },
  closed,
)
export const JournalAnswer = Type.Object({ entries: Type.Array(EntryView), next: orNull(Type.String()) })
export const VerifyAnswer = Type.Object({
  intact: Type.Boolean(),
  entries: Type.Integer(),
  heads: Type.Array(
    Type.Object({ chain: Type.String(), sequence: Type.Integer(), hash: Type.String(), key_id: Type.String() }),
  ),
  broken: orNull(Type.Object({ chain: Type.String(), from: Type.Integer(), to: Type.Integer(), why: Type.String() })),
  /** Rows compared with the journal. A plane before 0.2.1 does not do that. */
  rows: Type.Optional(
    Type.Object({
      nodes: Type.Integer(),
      tokens: Type.Integer(),
      differences: Type.Array(
        Type.Object({ row: Type.String(), subject: Type.String(), why: Type.String(), fenced: Type.Boolean() }),
      ),
      /** There are more than are listed. */
      more: Type.Boolean(),
    }),
  ),
  verified_at: Type.Optional(Type.String()),
})

export const journalApi = {
  read: endpoint({
    method: 'GET',
    path: '/v1/journal',
    access: 'viewer',
    summary:
      'Entries of the journal, oldest first; with wait_ms, waits for new ones. With until, actor or correlation a page may be empty: its next goes on',
    query: JournalQueryBody,
    answer: JournalAnswer,
  }),
  verify: endpoint({
    method: 'POST',
    path: '/v1/journal/verify',
    access: 'viewer',
    summary:
      'Recomputes every hash, checks every signed head, and compares rows with entries; a viewer gets a result of the last hour',
    body: EmptyRequest,
    answer: VerifyAnswer,
  }),
}
