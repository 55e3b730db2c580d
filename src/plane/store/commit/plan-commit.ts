// A change made ready for its group: encoded, and checked for the mistakes only a caller can make. They throw here, so
// that one bad change never costs its neighbours their commit.

import assert from 'node:assert/strict'
import type { Denial } from '#domain/core/certificate.ts'
import { type Change, nextVersion, type NodeGroup, type Read, type RowKind, type Write } from '#domain/core/change.ts'
import { isCutOff } from '#domain/core/cut-off.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import { hardwareValues } from './columns.ts'
import type { Holding } from './hardware-table.ts'
import type { EncodedDraft } from '#plane/store/journal/journal-chain.ts'
import { encodeRow, type EncodedRow } from './row-tables.ts'

export type CommitPlan = {
  readonly reads: readonly Read[]
  readonly writes: readonly PlannedWrite[]
  readonly removes: readonly PlannedRemoval[]
  readonly holdings: readonly Holding[]
  readonly entries: readonly EncodedDraft[]
  readonly unheld: NodeId | null
  readonly unused: readonly NodeGroup[]
  readonly soleTags: readonly string[]
  /** It may be committed in the reserve of the disk. */
  readonly cutOff: boolean
}

export type PlannedWrite = { readonly write: Write; readonly row: EncodedRow; readonly rule: WriteRule }

/** `version`: the one it has, above 0. */
export type PlannedRemoval = { readonly kind: RowKind; readonly key: string; readonly version: number }

export type WriteRule =
  /** The row has the version that was read; 0 is a new row. `next`: the one it gets. */
  | { readonly kind: 'after'; readonly version: number; readonly next: number }
  /** A denial: it may come twice, and the one that lasts longer stays. */
  | { readonly kind: 'keep-longer'; readonly denial: Denial }
  /** A ban that was not read: it may come twice, and the first one stays. */
  | { readonly kind: 'keep-first' }

/**
 * The write in place of a denial that there is. Null: that one stays, because it lasts longer, or as long and gives a reason. What was
 * denied is denied since the first time: by a later one it could leave a revocation list, whose number would go back.
 */
export const inPlaceOf = (kept: Denial, given: Denial): Pick<PlannedWrite, 'write' | 'row'> | null => {
  const stays =
    kept.untilMs > given.untilMs ||
    (kept.untilMs === given.untilMs && (kept.reason !== 'unspecified' || given.reason === 'unspecified'))
  if (stays) return null
  const value: Denial = { ...given, atMs: Math.min(kept.atMs, given.atMs) }
  return { write: { put: 'denial', value }, row: encodeRow('denial', value) }
}

/** An entry is small by design; a body this long holds outside text that was not bounded. */
const longestBody = 64 * 1024

export const planCommit = (change: Change): CommitPlan => {
  assert(change.entries.length > 0, 'a change without a journal entry')
  const reads = new Map(change.reads.map((read) => [placeOf(read.row, read.key), read]))
  const places = new Set<string>()
  const writes = change.writes.map((write) => {
    const row = encodeRow(write.put, write.value)
    const place = placeOf(row.kind, row.key)
    assert(!places.has(place), `a change writes ${place} twice`)
    places.add(place)
    return { write, row, rule: ruleOf(write, place, reads.get(place)) }
  })
  for (const { kind, name } of change.unused ?? [])
    // A change that puts a node under it relies on its row, so the two meet only if this one writes that row.
    assert(places.has(placeOf(kind, name)), `a change relies on ${kind} ${name} being unused without writing it`)
  for (const tag of change.soleTags ?? [])
    // A change that puts a tag on a node relies on the row of its hardware profile, in the same way.
    assert(
      places.has(placeOf('hardware-profile', tag)),
      `a change relies on nodes with the tag ${tag} without writing its hardware profile`,
    )
  const removes = (change.removes ?? []).map(({ row, key }) => {
    const place = placeOf(row, key)
    assert(!places.has(place), `a change writes ${place} and removes it, or removes it twice`)
    places.add(place)
    const version = reads.get(place)?.version ?? 0
    assert(version > 0, `a change removes ${place} without naming the version it has read`)
    return { kind: row, key, version }
  })
  return {
    reads: change.reads,
    writes,
    removes,
    holdings: [...holdingsOf(change.writes), ...removes.flatMap(holdingGivenUp)],
    entries: change.entries.map(encodeDraft),
    unheld: change.unheld ?? null,
    unused: change.unused ?? [],
    soleTags: change.soleTags ?? [],
    cutOff: isCutOff(change),
  }
}

const encodeDraft = (draft: EntryDraft): EncodedDraft => {
  const body = canonicalJson(draft.body)
  assert(body.length <= longestBody, `the body of an entry of type ${draft.type} is too long to be journaled`)
  assert(Number.isSafeInteger(draft.atMs), `an entry of type ${draft.type} without a time`)
  assert(draft.epoch === null || Number.isSafeInteger(draft.epoch), `an entry of type ${draft.type} without an epoch`)
  return { draft, body }
}

const ruleOf = (write: Write, place: string, read: Read | undefined): WriteRule => {
  if (write.put === 'denial') return { kind: 'keep-longer', denial: write.value }
  if (read !== undefined) return { kind: 'after', version: read.version, next: nextVersion(read) }
  switch (write.put) {
    case 'key-ban':
      return { kind: 'keep-first' }
    case 'certificate':
      return { kind: 'after', version: 0, next: 1 }
    default:
      // A row that is overwritten unread may have been revoked meanwhile.
      return assert.fail(`a change writes ${place} without naming the version it has read`)
  }
}

const holdingsOf = (writes: readonly Write[]): readonly Holding[] =>
  writes.flatMap((write) =>
    write.put === 'node'
      ? [
          {
            node: write.value.id,
            addresses: hardwareValues(write.value.hardware),
            tombstone: write.value.membership.kind === 'revoked',
          },
        ]
      : [],
  )

/** What is removed holds nothing, and takes nothing. */
const holdingGivenUp = ({ kind, key }: PlannedRemoval): readonly Holding[] =>
  kind === 'node' ? [{ node: key, addresses: [], tombstone: true }] : []

const placeOf = (kind: RowKind, key: string): string => `${kind} ${key}`
