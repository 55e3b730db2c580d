// Compares rows with the journal: memberships, denials, key bans and used tokens. It reads a slice at a time, and a difference
// counts only if it is still there a moment later, so that a commit between two reads is no difference. Every difference is
// fenced as soon as it is certain; only the list of them is bounded.

import type { CertificateRow, Denial } from '#domain/core/certificate.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { FormerRevocation, Node, NodeId } from '#domain/core/node.ts'
import {
  bannedKeysOf,
  denialKeyOf,
  differenceOfNode,
  endedEpochs,
  isTokenLive,
  lastCertificateOf,
  membershipEntryTypes,
  reopeningTypes,
  restoredDenial,
  revocationIn,
  tokenEndTypes,
  type Difference,
} from '#domain/journal/rows-and-journal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { entryPages, nodePages } from '#plane/core/pages.ts'

export type RowDifference = {
  readonly row: 'node' | 'denial' | 'key-ban' | 'token' | 'purged-node'
  /** A node's id, or a token's. */
  readonly subject: string
  readonly node: NodeId | null
  readonly why: string
  /** What shuts out what the journal shuts out; null: nothing is let in by the difference. */
  readonly fence: RowFence | null
}

export type RowFence =
  | { readonly kind: 'quarantine'; readonly node: NodeId; readonly revokedBefore: FormerRevocation | null }
  | { readonly kind: 'deny'; readonly denial: Denial }
  | { readonly kind: 'ban'; readonly spki: string; readonly node: NodeId }
  | { readonly kind: 'spend'; readonly token: string }

/** What the one who compares does between looks, and about what is found. */
export type Comparing = {
  /** Awaited between slices. */
  readonly rest: () => Promise<void>
  /** How long after differences were found they are looked at again. */
  readonly again: () => Promise<void>
  /** Called with each difference, listed or not. What it throws does not keep the other rows from their fences. */
  readonly fence: (difference: RowDifference) => Promise<void>
}

type RowsAndJournal = Pick<Store, 'get' | 'list' | 'nodes' | 'tokenById' | 'journal'>

export type Comparison = {
  readonly nodes: number
  readonly tokens: number
  readonly differences: readonly RowDifference[]
  /** There were more than are listed. */
  readonly more: boolean
  /** Why the first of the rows that could not be fenced was not; null: all were. */
  readonly fault: unknown
}

const sliceMs = 8
const nodesAtOnce = 50
const entriesAtOnce = 200
const newestEntries = 32
/** Where there are more, nothing is fenced: those that were not read may matter. */
const mostReopenings = 500
const mostCertificates = 1000
const mostDifferences = 100

type Look = () => Promise<readonly RowDifference[]>

export const compareRows = async (
  { store, clock }: { readonly store: RowsAndJournal; readonly clock: Clock },
  { rest, again, fence }: Comparing,
): Promise<Comparison> => {
  const found: RowDifference[] = []
  let more = false
  let fault: unknown = null
  const rested = restingAfter(clock, rest, sliceMs)
  /** One wait for all: thousands of rows can differ. */
  const compare = async (looks: readonly Look[]): Promise<void> => {
    const doubted: { readonly look: Look; readonly words: ReadonlySet<string> }[] = []
    for (const look of looks) {
      const first = await look()
      if (first.length > 0) doubted.push({ look, words: new Set(first.map(wordsOf)) })
      await rested()
    }
    if (doubted.length > 0) await again()
    for (const { look, words } of doubted) {
      for (const difference of await look()) {
        if (!words.has(wordsOf(difference))) continue
        await fence(difference).catch((error: unknown) => (fault ??= error))
        if (found.length < mostDifferences) found.push(difference)
        else more = true
      }
      await rested()
    }
  }
  const whole = await store.journal.isWhole()
  let nodes = 0
  for await (const page of nodePages(store, { limit: nodesAtOnce })) {
    await compare(
      page.map(
        ({ value }) =>
          () =>
            differencesOfNode(store, clock, value.id, whole),
      ),
    )
    nodes += page.length
  }
  const ofEntries = async (
    types: readonly EntryType[],
    look: (entry: JournalEntry) => ReturnType<Look>,
  ): Promise<number> => {
    let count = 0
    for await (const page of entryPages(store.journal, types, entriesAtOnce)) {
      await compare(
        page.map(
          ({ entry }) =>
            () =>
              look(entry),
        ),
      )
      count += page.length
    }
    return count
  }
  const tokens = await ofEntries(tokenEndTypes, (entry) => differencesOfToken(store, entry))
  await ofEntries(['host.revoked'], (entry) => missingTombstone(store, entry))
  await ofEntries(['node.purged'], (entry) => missingPurge(store, entry))
  return { nodes, tokens, differences: found, more, fault }
}

const wordsOf = ({ row, subject, why }: RowDifference): string => `${row} ${subject} ${why}`

/** Lets others run once a slice has taken its time. */
const restingAfter = (clock: Clock, rest: () => Promise<void>, ms: number): (() => Promise<void>) => {
  let endsMs = clock.monotonicMs() + ms
  return async () => {
    if (clock.monotonicMs() < endsMs) return
    await rest()
    endsMs = clock.monotonicMs() + ms
  }
}

const differencesOfNode = async (
  store: RowsAndJournal,
  clock: Clock,
  id: NodeId,
  whole: boolean,
): Promise<readonly RowDifference[]> => {
  const before = await store.get('node', id)
  if (before === null) return []
  const entries = await newestOf(store, id)
  const now = await store.get('node', id)
  // Changed between the reads: it is the next run's.
  if (now?.version !== before.version) return []
  const { unreadable } = before.value
  const difference = unreadable === undefined ? await certainOf(store, before.value, entries, whole) : null
  const ofRow: RowDifference[] = []
  // It is already shut out. A fence would overwrite a row that a backup or a later release may still repair.
  if (unreadable !== undefined)
    ofRow.push({ row: 'node', subject: id, node: id, why: unreadableWords(id, unreadable), fence: null })
  if (difference !== null) {
    const { why, lax, entry } = difference
    const fence =
      lax && entry !== null && (await isProven(store, entry))
        ? ({ kind: 'quarantine', node: id, revokedBefore: revocationIn(entry, entries) } as const)
        : null
    ofRow.push({ row: 'node', subject: id, node: id, why, fence })
  }
  return [...ofRow, ...(await differencesOfEnds(store, clock, before.value.id, entries))]
}

const unreadableWords = (id: NodeId, what: string): string =>
  `its row cannot be read: ${what}. It is shut out; put its row back from a backup, or: muster node revoke ${id}`

/** A row is lax only with respect to everything that may have let the node in again, however long ago. */
const certainOf = async (
  store: RowsAndJournal,
  node: Node,
  entries: readonly JournalEntry[],
  whole: boolean,
): Promise<Difference | null> => {
  const difference = differenceOfNode(node, entries, whole)
  if (difference === null || !difference.lax) return difference
  const query = { after: null, last: mostReopenings, limit: mostReopenings, node: node.id, type: reopeningTypes }
  const reopenings = (await store.journal.read(query)).map(({ entry }) => entry)
  if (reopenings.length === mostReopenings) return { ...difference, lax: false }
  return differenceOfNode(node, [...reopenings, ...entries], whole)
}

const newestOf = async (store: RowsAndJournal, node: NodeId): Promise<readonly JournalEntry[]> => {
  const query = { after: null, last: newestEntries, limit: newestEntries, node }
  const newest = (await store.journal.read({ ...query, type: null })).map(({ entry }) => entry)
  if (newest.some(({ type }) => membershipEntryTypes.includes(type))) return newest
  return (await store.journal.read({ ...query, type: membershipEntryTypes })).map(({ entry }) => entry)
}

const isProven = (store: RowsAndJournal, { chain, sequence }: JournalEntry): Promise<boolean> =>
  store.journal.isProven(chain, sequence)

/** Denials and bans of the epochs that were ended of late. */
const differencesOfEnds = async (
  store: RowsAndJournal,
  clock: Clock,
  id: NodeId,
  entries: readonly JournalEntry[],
): Promise<readonly RowDifference[]> => {
  const ends = endedEpochs(entries)
  if (ends.length === 0) return []
  const listed = await store.list('certificate', { where: { node: id }, after: null, limit: mostCertificates })
  const certificates: readonly CertificateRow[] = listed.map(({ value }) => value)
  const { clockToleranceMs } = (await domainSettingsRow(store)).value
  const nowMs = clock.nowMs()
  const found: RowDifference[] = []
  for (const end of ends) {
    const last = lastCertificateOf(end, certificates)
    const about = { subject: id, node: id }
    if (last !== null && last.notAfterMs > nowMs && (await store.get('denial', denialKeyOf(end, id))) === null) {
      const why = `its epoch ${end.epoch} was ended (${end.entry.type}) and is not denied`
      const ofEpoch = certificates.filter(({ subject }) => subject.kind === 'node' && subject.epoch === end.epoch)
      const denial = restoredDenial(end, id, ofEpoch, clockToleranceMs)
      found.push({
        ...about,
        row: 'denial',
        why,
        fence: (await isProven(store, end.entry)) ? { kind: 'deny', denial } : null,
      })
    }
    for (const spki of bannedKeysOf(end, last)) {
      if ((await store.get('key-ban', spki)) !== null) continue
      const why = `it was revoked, and its ${spki === last?.spki ? 'key' : 'recovery key'} SHA256:${spki} is not banned`
      const ban = { kind: 'ban', spki, node: id } as const
      found.push({ ...about, row: 'key-ban', why, fence: (await isProven(store, end.entry)) ? ban : null })
    }
  }
  return found
}

const differencesOfToken = async (store: RowsAndJournal, entry: JournalEntry): Promise<readonly RowDifference[]> => {
  if (entry.token === null) return []
  const row = await store.tokenById(entry.token)
  if (row === null || !isTokenLive(row.value)) return []
  const why = `the journal says that it is spent (${entry.type}), and its row says ${row.value.state.kind}`
  const fence = (await isProven(store, entry)) ? ({ kind: 'spend', token: entry.token } as const) : null
  return [{ row: 'token', subject: entry.token, node: entry.node, why, fence }]
}

const missingTombstone = async (store: RowsAndJournal, entry: JournalEntry): Promise<readonly RowDifference[]> => {
  if (entry.node === null || (await store.get('node', entry.node)) !== null) return []
  const query = { after: null, last: 1, limit: 1, node: entry.node, type: 'node.purged' } as const
  const [purge] = await store.journal.read(query)
  // Of the last epoch of its node: what was revoked before is gone with it.
  if (purge !== undefined && (purge.entry.epoch ?? 0) >= (entry.epoch ?? 0)) return []
  const why = 'the journal says that it was revoked, and its row is gone'
  return [{ row: 'node', subject: entry.node, node: entry.node, why, fence: null }]
}

/** Without what stays of it, a new registration of its name would begin with an epoch that was given before. */
const missingPurge = async (store: RowsAndJournal, entry: JournalEntry): Promise<readonly RowDifference[]> => {
  if (entry.node === null || (await store.get('node', entry.node)) !== null) return []
  const { row } = await formerNode(store, entry.node)
  const [is, was] = [row?.value.epoch ?? null, entry.epoch ?? 0]
  if (is !== null && is >= was) return []
  const found = is === null ? 'what stays of it is gone' : `what stays of it is of epoch ${is}`
  const why = `the journal says that it was purged in epoch ${was}, and ${found}`
  return [{ row: 'purged-node', subject: entry.node, node: entry.node, why, fence: null }]
}
