// What the journal says a row must be. Each entry that changes a node's membership fixes it, so the newest one is enough,
// and epochs only grow. Facts that the journal does not have are unknown, never different.

import {
  epochDenialKey,
  revocationReasons,
  type CertificateRow,
  type Denial,
  type RevocationReason,
} from '#domain/core/certificate.ts'
import { boundedText } from '#domain/core/change.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { FormerRevocation, Membership, Node } from '#domain/core/node.ts'
import type { Token } from '#domain/core/token.ts'

type Kind = Membership['kind']

const membershipAfter: Partial<Readonly<Record<EntryType, Kind>>> = {
  'node.registered': 'registered',
  'host.enrolled': 'enrolled',
  'node.confirmed': 'active',
  'node.renewed': 'active',
  'node.renewal_confirmed': 'active',
  'node.lapsed': 'inactive',
  'node.returned': 'active',
  'node.quarantined': 'quarantined',
  'node.released': 'inactive',
  'node.recovered': 'enrolled',
  'node.repaired': 'quarantined',
  'host.revoked': 'revoked',
}

export const membershipEntryTypes = Object.keys(membershipAfter) as readonly EntryType[]

/** Entries that end an epoch: its certificates are denied from there on. */
const epochEnds: readonly EntryType[] = ['host.revoked', 'node.quarantined', 'node.superseded']

/**
 * Within an epoch, only these let a node in again that is quarantined or revoked. What else opens it begins the epoch or
 * comes behind one of these.
 */
export const reopeningTypes: readonly EntryType[] = ['node.released', 'node.registered']

/**
 * Entries this close in different chains may have come in either order, and a row that fits one of them raises no alert.
 * Replicas' clocks may be further apart than this, so a fence never relies on times.
 */
const skewMs = 60_000

export type Difference = {
  readonly why: string
  /** The entry that the row contradicts; null: there is none, and the row has more than the journal. */
  readonly entry: JournalEntry | null
  /** The row lets in what the journal shuts out. */
  readonly lax: boolean
}

/** The actor of fences. */
export const journalActor = 'system:journal'

/** `end`: the last of its chain that says a membership. Null: the journal does not say that the node was revoked. */
export const revocationIn = (end: JournalEntry, entries: readonly JournalEntry[]): FormerRevocation | null => {
  // An earlier fence counts as the state that it restored.
  const [entry] = entries
    .filter(({ chain, epoch, sequence }) => chain === end.chain && epoch === end.epoch && sequence <= end.sequence)
    .filter(({ type, actor }) => membershipAfter[type] !== undefined && actor !== journalActor)
    .toSorted((one, other) => other.sequence - one.sequence)
  if (entry?.type !== 'host.revoked') return null
  const { reason } = entry.body
  return {
    by: entry.actor,
    reason: boundedText(typeof reason === 'string' ? reason : 'unknown', 100),
    atMs: entry.atMs,
  }
}

/**
 * Whether the node is revoked as far as the journal says, where its row does not. `entries`: the newest of the node that say a
 * membership. Of what may have come in either order, a revocation counts.
 */
export const standingRevocation = (entries: readonly JournalEntry[]): FormerRevocation | null => {
  const ofEpoch = ofNewestEpoch(entries.filter(({ type }) => membershipAfter[type] !== undefined))
  const lasts = newestOfEachChain(ofEpoch)
  const ends = [...lasts.filter((last) => isLastingEnd(last, ofEpoch)), ...possibleLasts(lasts)]
  return ends.map((end) => revocationIn(end, ofEpoch)).find((revocation) => revocation !== null) ?? null
}

const ofNewestEpoch = (said: readonly JournalEntry[]): readonly JournalEntry[] => {
  const epoch = Math.max(0, ...said.map((entry) => entry.epoch ?? 0))
  return said.filter((entry) => (entry.epoch ?? 0) === epoch)
}

const possibleLasts = (lasts: readonly JournalEntry[]): readonly JournalEntry[] => {
  const newestMs = Math.max(0, ...lasts.map(({ atMs }) => atMs))
  return lasts.filter(({ atMs }) => atMs >= newestMs - skewMs)
}

/**
 * `entries`: the newest of the node, at least one that says its membership where there is one, and of each chain all that
 * follow the first given. A row is known to be lax only if all its entries of `reopeningTypes` are among them. Null: nothing
 * differs.
 */
export const differenceOfNode = (
  node: Node,
  entries: readonly JournalEntry[],
  wholeJournal: boolean,
): Difference | null => {
  const said = entries.filter(({ type }) => membershipAfter[type] !== undefined)
  const { kind } = node.membership
  if (said.length === 0) {
    return wholeJournal
      ? { why: `its row says ${kind}, and no entry has registered it`, entry: null, lax: false }
      : null
  }
  const epoch = Math.max(...said.map((entry) => entry.epoch ?? 0))
  const ofEpoch = said.filter((entry) => (entry.epoch ?? 0) === epoch)
  const lasts = newestOfEachChain(ofEpoch)
  const newest = lasts.reduce((one, other) => (other.atMs >= one.atMs ? other : one))
  const possible = lasts.filter(({ chain, atMs }) => chain === newest.chain || atMs >= newest.atMs - skewMs)
  if (node.epoch < epoch) {
    return {
      why: `its row is of epoch ${node.epoch}, and the journal has epoch ${epoch}`,
      entry: newest,
      lax: !isShut(kind),
    }
  }
  if (node.epoch > epoch) {
    return {
      why: `its row is of epoch ${node.epoch}, and the journal has none behind ${epoch}`,
      entry: null,
      lax: false,
    }
  }
  const differs = (entry: JournalEntry, lax: boolean): Difference => {
    const why = `its row says ${kind}, and the journal says ${membershipAfter[entry.type]} (${entry.type})`
    return { why, entry, lax }
  }
  const end = isShut(kind) ? undefined : lasts.find((entry) => isLastingEnd(entry, ofEpoch))
  if (end !== undefined) return differs(end, true)
  if (possible.some(({ type }) => membershipAfter[type] === kind)) return null
  return differs(newest, false)
}

/**
 * `last`: the last of its chain. An entry that reopens the node in another chain may have come before or after it: clocks
 * do not say. Where there is none, the node is shut out, whatever other chains contain.
 */
const isLastingEnd = (last: JournalEntry, ofEpoch: readonly JournalEntry[]): boolean =>
  isShut(membershipAfter[last.type] as Kind) &&
  !ofEpoch.some(({ chain, type }) => chain !== last.chain && reopeningTypes.includes(type))

const isShut = (kind: Kind): boolean => kind === 'revoked' || kind === 'quarantined'

/** Within a chain the order is certain. */
const newestOfEachChain = (entries: readonly JournalEntry[]): readonly JournalEntry[] => {
  const newest = new Map<string, JournalEntry>()
  for (const entry of entries) {
    const known = newest.get(entry.chain)
    if (known === undefined || known.sequence < entry.sequence) newest.set(entry.chain, entry)
  }
  return [...newest.values()]
}

export type EndedEpoch = { readonly entry: JournalEntry; readonly epoch: number }

/** The epochs that these entries have ended, each with the entry that did. */
export const endedEpochs = (entries: readonly JournalEntry[]): readonly EndedEpoch[] => {
  const ended = new Map<number, EndedEpoch>()
  for (const entry of entries) {
    const { epoch } = entry
    if (epochEnds.includes(entry.type) && epoch !== null && epoch > 0 && !ended.has(epoch))
      ended.set(epoch, { entry, epoch })
  }
  return [...ended.values()]
}

/** The newest certificate of an epoch when it ended: it was in a slot then, so its end was known and its key is banned by a revocation. */
export const lastCertificateOf = (
  { entry, epoch }: EndedEpoch,
  certificates: readonly CertificateRow[],
): CertificateRow | null =>
  certificates
    .filter(({ subject, issuedAtMs }) => subject.kind === 'node' && subject.epoch === epoch && issuedAtMs <= entry.atMs)
    .toSorted((one, other) => other.issuedAtMs - one.issuedAtMs)[0] ?? null

/**
 * The keys that the revocation of an epoch has banned, as far as they are known: the newest certified one, and the one it
 * recovered with. Releases before 0.2.1 banned no recovery key and named none, so what is not named is not missing.
 */
export const bannedKeysOf = ({ entry }: EndedEpoch, last: CertificateRow | null): readonly string[] => {
  if (entry.type !== 'host.revoked') return []
  const named = entry.body['recovery_key']
  const recoveryKey = typeof named === 'string' ? /^SHA256:([0-9a-f]{64})$/.exec(named)?.[1] : undefined
  return [...new Set([last?.spki, recoveryKey].filter((spki) => spki !== undefined))]
}

/** The denial that an ended epoch has to have, for as long as one of its certificates could be valid. */
export const restoredDenial = (
  { entry, epoch }: EndedEpoch,
  node: string,
  certificates: readonly CertificateRow[],
  toleranceMs: number,
): Denial => ({
  kind: 'epoch',
  node,
  epoch,
  atMs: entry.atMs,
  untilMs: Math.max(0, ...certificates.map(({ notAfterMs }) => notAfterMs)) + toleranceMs,
  why: `restored: the journal ended epoch ${epoch} (${entry.type})`,
  reason: reasonCodeOf(entry),
})

const reasonCodeOf = ({ body }: JournalEntry): RevocationReason =>
  revocationReasons.find((reason) => reason === body['reason_code']) ?? 'unspecified'

export const denialKeyOf = ({ epoch }: EndedEpoch, node: string): string => epochDenialKey(node, epoch)

/** Entries after which a token is used up. */
export const tokenEndTypes: readonly EntryType[] = [
  'host.enrolled',
  'enrollment_token.used',
  'enrollment_token.revoked',
]

export const isTokenLive = ({ state }: Token): boolean => state.kind === 'unused' || state.kind === 'bound'
