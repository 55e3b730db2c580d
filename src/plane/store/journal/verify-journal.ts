// Is the journal what was written? Fed with the rows in order, it recomputes every hash and checks every signed head,
// and says which entry, or which smallest range, is not what it was.

import { sameBytes } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import { chainedHash, genesisHash, scarredHash, signedBytes } from './journal-chain.ts'
import type { BaseRow, JournalRow } from './journal-chain.ts'
import type { HeadSigner, KnownPlace } from '#plane/store/contract/store.ts'

export type Broken = { readonly from: number; readonly to: number; readonly why: string }

export type JournalCheck = {
  /** Null: as far as this entry goes, all is well. */
  step(row: JournalRow): Broken | null
  /** What the end itself says; `written` is the newest sequence known to have been written. */
  end(written: number): Broken | null
}

/** How long a check keeps the event loop to itself: enrollments go on beside it. */
const turnMs = 8

/**
 * One chain from its base to `written`, the newest sequence known to have been written, a page at a time. `entries`: how
 * many are what was written. `rest` is awaited between slices.
 */
export const checkChain = async (
  clock: Clock,
  signer: HeadSigner,
  base: BaseRow,
  written: number,
  pageAfter: (sequence: number) => readonly JournalRow[] | Promise<readonly JournalRow[]>,
  rest: () => Promise<void>,
): Promise<{ readonly broken: Broken | null; readonly entries: number }> => {
  const check = startCheck(signer, base)
  let broken = checkBase(signer, base)
  let at = base.sequence
  let turnEndsMs = clock.monotonicMs() + turnMs
  const restIfDue = async (): Promise<void> => {
    if (clock.monotonicMs() < turnEndsMs) return
    await rest()
    turnEndsMs = clock.monotonicMs() + turnMs
  }
  while (broken === null && at < written) {
    const rows = await pageAfter(at)
    for (const row of rows) {
      broken = check.step(row)
      if (broken !== null) break
      at = row.sequence
      if (at === written) break
      await restIfDue()
    }
    if (rows.length === 0) break
  }
  return { broken: broken ?? check.end(written), entries: at - base.sequence }
}

/**
 * Whether a signed head covers the first of these rows, which follow each other and begin behind the hash `before`. Null:
 * none of them is signed, so more have to be read. The signature names chain, place and hash, and each hash covers its
 * entry, so what was written by others cannot come to the same hash.
 */
const coveredByHead = (
  signer: HeadSigner,
  chain: string,
  before: Uint8Array,
  rows: readonly JournalRow[],
): boolean | null => {
  let last: { readonly hash: Uint8Array; readonly sequence: number } | null = null
  for (const row of rows) {
    const from: Uint8Array = last?.hash ?? before
    const chained = [from, scarredHash(from)].some((hash) => sameBytes(chainedHash(hash, row.bytes), row.hash))
    if (!chained || (last !== null && row.sequence !== last.sequence + 1) || misplaced(chain, row) !== null)
      return false
    last = row
    if (row.signature === null || row.keyId === null) continue
    return signer.verify(
      signedBytes('head', { chain, sequence: row.sequence, hash: row.hash }, row.keyId),
      row.signature,
    )
  }
  return null
}

/** Entries of one group have one signed head; a group is far shorter. */
const longestGroup = 4096
const provePage = 64

/** `pageAfter` as for `checkChain`; `before` is the hash the entry at `sequence` is chained to. */
export const isEntryProven = async (
  signer: HeadSigner,
  at: { readonly chain: string; readonly sequence: number; readonly before: Uint8Array },
  pageAfter: (sequence: number, limit: number) => readonly JournalRow[] | Promise<readonly JournalRow[]>,
): Promise<boolean> => {
  let rows: readonly JournalRow[] = []
  while (rows.length < longestGroup) {
    const more = await pageAfter(at.sequence - 1 + rows.length, provePage)
    if (more.length === 0) return false
    rows = [...rows, ...more]
    if (rows[0]?.sequence !== at.sequence) return false
    const covered = coveredByHead(signer, at.chain, at.before, rows)
    if (covered !== null) return covered
  }
  return false
}

/** Null: every place that was seen before is still there. */
export const missingPlace = async (
  known: readonly KnownPlace[],
  hashAt: (chain: string, sequence: number) => string | null | Promise<string | null>,
): Promise<(Broken & { readonly chain: string }) | null> => {
  for (const { chain, sequence, hash } of known) {
    const found = await hashAt(chain, sequence)
    if (found === hash) continue
    const why =
      found === null
        ? `entry ${sequence} was there before and is not any more: the end of the chain, or all of it, was cut off`
        : `entry ${sequence} is another one than was there before`
    return { chain, from: sequence, to: sequence, why }
  }
  return null
}

export const noBase = 'the record of where the journal begins is missing'

/** Entries behind the newest one a chain is said to have. */
export const entriesBehind = (written: number, newest: number): Broken | null =>
  newest > written
    ? { from: written + 1, to: newest, why: `entries behind ${written} were not written by this plane` }
    : null

export const checkBase = (signer: HeadSigner, base: BaseRow): Broken | null => {
  const first = base.sequence + 1
  if (base.sequence === 0 && !sameBytes(base.hash, genesisHash(base.chain, base.domain)))
    return { from: first, to: first, why: 'the record of where the journal begins was altered' }
  if (!signer.verify(signedBytes('base', base, base.keyId), base.signature))
    return { from: first, to: first, why: 'the record of where the journal begins carries no signature of this plane' }
  return null
}

export const startCheck = (signer: HeadSigner, base: BaseRow): JournalCheck => {
  const { chain } = base
  let last = { sequence: base.sequence, hash: base.hash }
  let proven = base.sequence

  const step = (row: JournalRow): Broken | null => {
    const { sequence } = row
    if (sequence !== last.sequence + 1)
      return { from: last.sequence + 1, to: sequence - 1, why: missing(last.sequence + 1, sequence - 1) }
    if (!sameBytes(chainedHash(last.hash, row.bytes), row.hash)) {
      if (sameBytes(chainedHash(scarredHash(last.hash), row.bytes), row.hash))
        return unprovenTail(proven, last.sequence)
      return mismatch(proven, sequence)
    }
    last = { sequence, hash: row.hash }
    const disagreement = misplaced(chain, row)
    if (disagreement !== null) return { from: sequence, to: sequence, why: disagreement }
    if (row.signature === null || row.keyId === null) return null
    const head = { chain, sequence, hash: row.hash }
    if (!signer.verify(signedBytes('head', head, row.keyId), row.signature))
      return {
        from: proven + 1,
        to: sequence,
        why: `the signed head at entry ${sequence} does not fit: entries up to it were altered and their hashes recomputed, or its signature was`,
      }
    proven = sequence
    return null
  }

  const end = (written: number): Broken | null => {
    if (last.sequence < written)
      return { from: last.sequence + 1, to: written, why: missing(last.sequence + 1, written) }
    // The base is written together with the first entry, and pruning leaves the newest one.
    const empty = last.sequence === base.sequence
    return proven === last.sequence && !empty ? null : unprovenTail(proven, last.sequence)
  }

  return { step, end }
}

const missing = (from: number, to: number): string =>
  from === to ? `entry ${from} is missing` : `entries ${from} to ${to} are missing`

const mismatch = (proven: number, sequence: number): Broken => {
  // The entries between the last valid head and this one are bound only by hashes that a forger could compute.
  const doubt =
    proven + 1 < sequence ? `, or entries from ${proven + 1} on were altered and their hashes recomputed up to it` : ''
  return { from: sequence, to: sequence, why: `entry ${sequence} does not match its hash${doubt}` }
}

const unprovenTail = (proven: number, last: number): Broken => ({
  from: proven + 1,
  to: Math.max(proven + 1, last),
  why: `no signed head covers the entries behind ${proven}: what followed entry ${last} was cut off, or signatures were removed`,
})

const misplaced = (chain: string, row: JournalRow): string | null => {
  const entry = parsed(row.bytes)
  if (entry === null) return `entry ${row.sequence} is not readable`
  if (entry['chain'] !== chain || entry['sequence'] !== row.sequence)
    return `entry ${row.sequence} is not in the place it was written for`
  for (const column of ['operation', 'node', 'type'] as const)
    if (entry[column] !== row[column]) return `entry ${row.sequence} is filed under another ${column} than its own`
  return null
}

const parsed = (bytes: string): Record<string, unknown> | null => {
  try {
    const value: unknown = JSON.parse(bytes)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}
