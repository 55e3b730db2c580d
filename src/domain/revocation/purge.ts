// Purging the record of a revoked node (ruling 22). What describes it goes; what keeps its keys from coming back, and its epochs from
// being given twice, stays under the hash of its name. docs/decisions/identity/purge.md has the table of every kind of row.

import { alertKey, type Alert } from '#domain/alerts/alert.ts'
import { certificateKey, denialKey, type CertificateRow, type Denial } from '#domain/core/certificate.ts'
import {
  boundedText,
  decided,
  entry,
  readOf,
  type Change,
  type Decided,
  type NodeFacts,
  type Read,
  type Row,
  type Write,
} from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import { purgedHolder, type FormerNode } from '#domain/core/purged-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { WireguardAddress, WireguardKey } from '#domain/core/wireguard.ts'
import type { Token } from '#domain/core/token.ts'
import type { Allocation } from '#domain/fleet/allocation.ts'
import type { KeyClaim } from '#domain/identity/key-claim.ts'
import type { NameClaim } from '#domain/programs/name-claim.ts'
import { leavesOf, programKey, type Program } from '#domain/programs/program.ts'
import { isoTime } from '#platform/clock.ts'
import type { Receipt } from './receipt.ts'

/** Every row that names the node, but for its own and those that end within the hour (plans). */
export type RowsOfNode = {
  /** Those of its programs too. */
  readonly certificates: readonly Row<CertificateRow>[]
  readonly programs: readonly Row<Program>[]
  /** Of its epochs. */
  readonly denials: readonly Row<Denial>[]
  readonly tokens: readonly Row<Token>[]
  readonly receipts: readonly Row<Receipt>[]
  readonly alerts: readonly Row<Alert>[]
  readonly allocations: readonly Row<Allocation>[]
  readonly keyClaims: readonly Row<KeyClaim>[]
  readonly wireguardKeys: readonly Row<WireguardKey>[]
  readonly addresses: readonly Row<WireguardAddress>[]
  readonly names: readonly Row<NameClaim>[]
}

export type PurgeFacts = NodeFacts & {
  /** What stayed of an earlier node of this name. */
  readonly former: FormerNode
  readonly rows: RowsOfNode
  /** A time that is never ahead of the real one: what is removed for good is judged by it (lived-time.ts). */
  readonly livedMs: number
  readonly reason: string
}

/** Why it cannot be purged now; null: it can. */
export const purgeBarred = ({
  node,
  rows,
  livedMs,
  nowMs,
}: Pick<PurgeFacts, 'node' | 'rows' | 'livedMs' | 'nowMs'>): Refusal | null => {
  const { id, membership } = node.value
  const no = (why: string): Refusal => refuse('NODE_STATE_CONFLICT', `${id} cannot be purged: ${why}`)
  if (membership.kind !== 'revoked') return no(`it is ${membership.kind}, and only a revoked node can`)
  const endMs = lastEndMs(rows)
  if (endMs >= nowMs) return no(`a certificate of it, or its denial, is good until ${isoTime(endMs)}`)
  if (endMs >= livedMs) {
    return no(
      `its last certificate has ended at ${isoTime(endMs)}, and for as long as planes have run on this store, ` +
        `which no wrong clock changes, it is ${isoTime(livedMs)}`,
    )
  }
  const unsettled = rows.receipts.find(({ value }) => value.settledAtMs === null)
  if (unsettled !== undefined) return no(`its receipt ${unsettled.value.id} is not settled`)
  const unresolved = rows.alerts.find(({ value }) => value.state.kind !== 'resolved')
  if (unresolved !== undefined) return no(`its alert ${unresolved.value.id} (${unresolved.value.kind}) is not resolved`)
  return null
}

/** When the last of what it was given has ended, also for verifiers that go by a revocation list. */
const lastEndMs = ({ certificates, programs, denials }: RowsOfNode): number => {
  const ends = [
    ...certificates.map(({ value }) => value.notAfterMs),
    ...programs.flatMap(({ value }) => leavesOf(value)).map(({ notAfterMs }) => notAfterMs),
    ...denials.map(({ value }) => value.untilMs),
  ]
  return ends.reduce((last, endMs) => Math.max(last, endMs), -Infinity)
}

/** Rows of one commit. A year of short certificates leaves a hundred thousand keys behind. */
const rowsAtOnce = 500

/** What is committed before `decidePurge`, where there is more than one commit should hold. Only what it would do as well. */
export const purgeParts = (facts: PurgeFacts): readonly Change[] => {
  const { node, former, rows, by, nowMs } = facts
  const { id, epoch } = node.value
  const removed = rows.certificates.map(readOfCertificate)
  const hidden = rows.keyClaims.map((row) => hiddenHolder(row, id, former.key))
  const count = removed.length + hidden.length
  const parts: Change[] = []
  for (let from = 0; count - from > rowsAtOnce; from += rowsAtOnce) {
    const certificates = removed.slice(from, from + rowsAtOnce)
    const keys = hidden.slice(Math.max(0, from - removed.length), Math.max(0, from + rowsAtOnce - removed.length))
    const body = { reason: boundedText(facts.reason), certificates: certificates.length, keys_kept: keys.length }
    parts.push({
      reads: [readOf('node', id, node), ...certificates, ...keys.map(({ read }) => read)],
      writes: keys.map(({ write }) => write),
      removes: certificates.map(({ row, key }) => ({ row, key })),
      entries: [entry(by, nowMs, 'node.purging', { node: id, epoch }, body)],
    })
  }
  return parts
}

export const decidePurge = (facts: PurgeFacts): Decided | Refusal => {
  const { node, former, rows, by, nowMs } = facts
  const barred = purgeBarred(facts)
  if (barred !== null) return barred
  const { id, epoch, tenure, counter } = node.value
  const removed: readonly Read[] = [readOf('node', id, node), ...removedWith(rows)]
  const kept = keptOf(rows, id, former.key)
  const purged = { name: former.key, epoch, tenure, counter, version: node.version, purgedAtMs: nowMs }
  const body = {
    reason: boundedText(facts.reason),
    name_hash: former.key,
    counter,
    ...removedCounts(rows),
    keys_kept: rows.keyClaims.length + rows.wireguardKeys.length,
  }
  return decided({
    reads: [...removed, ...kept.map(({ read }) => read), readOf('purged-node', former.key, former.row)],
    writes: [{ put: 'purged-node', value: purged }, ...kept.map(({ write }) => write)],
    removes: removed.map(({ row, key }) => ({ row, key })),
    entries: [entry(by, nowMs, 'node.purged', { node: id, epoch }, body)],
  })
}

const removedWith = (rows: RowsOfNode): readonly Read[] => [
  ...rows.certificates.map(readOfCertificate),
  ...rows.programs.map((row) => readOf('program', programKey(row.value), row)),
  ...rows.denials.map((row) => readOf('denial', denialKey(row.value), row)),
  ...rows.tokens.map((row) => readOf('token', row.value.hash, row)),
  ...rows.receipts.map((row) => readOf('receipt', row.value.id, row)),
  ...rows.alerts.map((row) => readOf('alert', alertKey(row.value), row)),
  ...rows.allocations.map((row) => readOf('allocation', row.value.id, row)),
]

const readOfCertificate = (row: Row<CertificateRow>): Read =>
  readOf('certificate', certificateKey(row.value.issuer, row.value.serial), row)

type Kept = { readonly read: Read; readonly write: Write }

const hiddenHolder = (row: Row<KeyClaim>, id: string, hash: string): Kept => {
  const { spki, holders } = row.value
  const hidden = holders.map((holder) => (holder.node === id ? { ...holder, node: purgedHolder(hash) } : holder))
  return { read: readOf('key-claim', spki, row), write: { put: 'key-claim', value: { spki, holders: hidden } } }
}

/** What stays, with the hash in place of the name: no node gets these keys, and an address rests as long as it has to. */
const keptOf = (rows: RowsOfNode, id: string, hash: string): readonly Kept[] => {
  const node = purgedHolder(hash)
  return [
    ...rows.keyClaims.map((row) => hiddenHolder(row, id, hash)),
    ...rows.wireguardKeys.map((row): Kept => {
      const { replaced: _mayComeBack, ...key } = row.value
      const value = { ...key, node, endedAtMs: key.endedAtMs ?? 0 }
      return { read: readOf('wireguard-key', key.publicKey, row), write: { put: 'wireguard-key', value } }
    }),
    ...rows.addresses.map((row): Kept => {
      const value = { ...row.value, node }
      return { read: readOf('overlay-address', value.address, row), write: { put: 'overlay-address', value } }
    }),
    ...rows.names.map((row): Kept => {
      const value = { ...row.value, holder: { kind: 'nobody' as const } }
      return { read: readOf('name-claim', value.name, row), write: { put: 'name-claim', value } }
    }),
  ]
}

const removedCounts = (rows: RowsOfNode): Readonly<Record<string, number>> => ({
  certificates: rows.certificates.length,
  programs: rows.programs.length,
  tokens: rows.tokens.length,
  receipts: rows.receipts.length,
  alerts: rows.alerts.length,
})

/** In words, for a plan. */
export const purgeWords = (rows: RowsOfNode): string =>
  [
    'its record is removed for good: name, hardware, observations',
    ...Object.entries(removedCounts(rows)).flatMap(([name, count]) =>
      count === 0 ? [] : [counted(count, name.slice(0, -1))],
    ),
  ].join(', ') +
  `; its epoch and ${counted(rows.keyClaims.length + rows.wireguardKeys.length, 'key')} stay under a hash of its name`
