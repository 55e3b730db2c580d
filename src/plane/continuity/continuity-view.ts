import { reasonForDoubt, type Continuity, type Doubt } from '#domain/continuity/continuity.ts'
import { isoTime } from '#platform/clock.ts'
import type { ContinuityView, DoubtView } from '#wire/continuity/store-api.ts'
import type { Static } from 'typebox'
import { isoTimeOrNull } from '#plane/http/iso-time-or-null.ts'

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
