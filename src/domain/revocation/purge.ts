// Purging the record of a revoked node (ruling 22). What describes it goes; what keeps its keys from coming back, and its epochs from
// being given twice, stays under the hash of its name. docs/decisions/identity/purge.md has the table of every kind of row.

import { alertKey } from '#domain/alerts/alert.ts'
import { certificateKey, denialKey } from '#domain/core/certificate.ts'
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
  type RowTypes,
  type Write,
} from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import { purgedHolder, type FormerNode } from '#domain/core/purged-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { hasOrphans, isToBeSettled, lastPossibleMs } from '#domain/issuers/order.ts'
import { leavesOf, programKey } from '#domain/programs/program.ts'
import { isoTime } from '#platform/clock.ts'

/** The kinds of rows that name a node, but for its own and those that end within the hour (plans). */
export type PurgedKind =
  | 'certificate'
  | 'program'
  | 'denial'
  | 'token'
  | 'receipt'
  | 'alert'
  | 'allocation'
  | 'key-claim'
  | 'wireguard-key'
  | 'overlay-address'
  | 'name-claim'
  | 'order'

/** What becomes of one row that names the node. */
export type PurgeStep = {
  readonly kind: PurgedKind
  readonly read: Read
  /** What stays of it; null: it is removed. */
  readonly write: Write | null
  /** When what the node was given by it has ended; -Infinity: it gives nothing. */
  readonly endMs: number
  /** What has to be finished before; null: nothing. */
  readonly hinders: string | null
}

/** Also for verifiers that go by a revocation list. */
type Ends = { readonly endMs?: number; readonly hinders?: string | null }

const removal = <K extends PurgedKind>(
  kind: K,
  key: string,
  row: Row<RowTypes[K]>,
  { endMs = -Infinity, hinders = null }: Ends = {},
): PurgeStep => ({ kind, read: readOf(kind, key, row), write: null, endMs, hinders })

const keeping = <K extends PurgedKind>(kind: K, key: string, row: Row<RowTypes[K]>, write: Write): PurgeStep => ({
  ...removal(kind, key, row),
  write,
})

type StepsByKind = { readonly [K in PurgedKind]: (row: Row<RowTypes[K]>, id: string, hash: string) => PurgeStep }

/** What stays has the hash in place of the name: no node gets these keys, and an address rests as long as it has to. */
const stepsByKind: StepsByKind = {
  certificate: (row) => {
    const { issuer, serial, notAfterMs } = row.value
    return removal('certificate', certificateKey(issuer, serial), row, { endMs: notAfterMs })
  },
  program: (row) => {
    const endMs = leavesOf(row.value).reduce((last, { notAfterMs }) => Math.max(last, notAfterMs), -Infinity)
    return removal('program', programKey(row.value), row, { endMs })
  },
  denial: (row) => removal('denial', denialKey(row.value), row, { endMs: row.value.untilMs }),
  token: (row) => removal('token', row.value.hash, row),
  receipt: (row) => {
    const { id, settledAtMs } = row.value
    return removal('receipt', id, row, { hinders: settledAtMs === null ? `its receipt ${id} is not settled` : null })
  },
  alert: (row) => {
    const { id, kind, state } = row.value
    const hinders = state.kind === 'resolved' ? null : `its alert ${id} (${kind}) is not resolved`
    return removal('alert', alertKey(row.value), row, { hinders })
  },
  allocation: (row) => removal('allocation', row.value.id, row),
  'key-claim': (row, id, hash) => {
    const { spki, holders } = row.value
    const hidden = holders.map((holder) => (holder.node === id ? { ...holder, node: purgedHolder(hash) } : holder))
    return keeping('key-claim', spki, row, { put: 'key-claim', value: { spki, holders: hidden } })
  },
  'wireguard-key': (row, _, hash) => {
    const { replaced: _mayComeBack, ...key } = row.value
    const value = { ...key, node: purgedHolder(hash), endedAtMs: key.endedAtMs ?? 0 }
    return keeping('wireguard-key', key.publicKey, row, { put: 'wireguard-key', value })
  },
  'overlay-address': (row, _, hash) => {
    const value = { ...row.value, node: purgedHolder(hash) }
    return keeping('overlay-address', value.address, row, { put: 'overlay-address', value })
  },
  'name-claim': (row) => {
    const value = { ...row.value, holder: { kind: 'nobody' as const } }
    return keeping('name-claim', value.name, row, { put: 'name-claim', value })
  },
  // What was signed for it and never delivered is a certificate of the node, too. The one that was kept has a row of its own.
  order: (row) => {
    const endMs = isToBeSettled(row.value) || hasOrphans(row.value) ? lastPossibleMs(row.value) : -Infinity
    return removal('order', row.value.id, row, { endMs })
  },
}

export const purgeStep = <K extends PurgedKind>(kind: K, row: Row<RowTypes[K]>, id: string, hash: string): PurgeStep =>
  stepsByKind[kind](row, id, hash)

/** As journal entries have them. */
const countedKinds = {
  certificates: ['certificate'],
  programs: ['program'],
  tokens: ['token'],
  receipts: ['receipt'],
  alerts: ['alert'],
  keys_kept: ['key-claim', 'wireguard-key'],
} as const satisfies Readonly<Record<string, readonly PurgedKind[]>>

export type PurgeCounts = { readonly [name in keyof typeof countedKinds]: number }

const countsBy = (count: (name: keyof typeof countedKinds) => number): PurgeCounts =>
  Object.fromEntries(
    Object.keys(countedKinds).map((name) => [name, count(name as keyof typeof countedKinds)]),
  ) as PurgeCounts

export const nothingPurged: PurgeCounts = countsBy(() => 0)

const addCounts = (one: PurgeCounts, other: PurgeCounts): PurgeCounts => countsBy((name) => one[name] + other[name])

const countSteps = (steps: readonly PurgeStep[]): PurgeCounts =>
  countsBy((name) => steps.filter(({ kind }) => (countedKinds[name] as readonly PurgedKind[]).includes(kind)).length)

/** Adds what an entry `node.purging` says; `node.purged` ended an earlier purge of that name. */
export const addPurging = (
  sum: PurgeCounts,
  { type, body }: { readonly type: string; readonly body: Readonly<Record<string, unknown>> },
): PurgeCounts =>
  type === 'node.purged'
    ? nothingPurged
    : addCounts(
        sum,
        countsBy((name) => Number(body[name] ?? 0)),
      )

/** Rows of one commit. A year of short certificates leaves a hundred thousand keys behind. */
export const rowsAtOnce = 500

/** What a walk over all rows that name a node has found. It keeps no more of them than one commit holds. */
export type PurgeSurvey = {
  readonly rows: number
  readonly counts: PurgeCounts
  /** The first of them. */
  readonly first: readonly PurgeStep[]
  /** When the last of what it was given has ended. */
  readonly endMs: number
  readonly hinders: string | null
}

export const emptySurvey: PurgeSurvey = { rows: 0, counts: nothingPurged, first: [], endMs: -Infinity, hinders: null }

export const addSteps = (survey: PurgeSurvey, steps: readonly PurgeStep[]): PurgeSurvey => ({
  rows: survey.rows + steps.length,
  counts: addCounts(survey.counts, countSteps(steps)),
  first: [...survey.first, ...steps.slice(0, rowsAtOnce - survey.first.length)],
  endMs: steps.reduce((last, { endMs }) => Math.max(last, endMs), survey.endMs),
  hinders: survey.hinders ?? steps.find(({ hinders }) => hinders !== null)?.hinders ?? null,
})

export type PurgeFacts = NodeFacts & {
  /** What stayed of an earlier node of this name. */
  readonly former: FormerNode
  readonly survey: PurgeSurvey
  /** A time that is never ahead of the real one: what is removed for good is judged by it (lived-time.ts). */
  readonly livedMs: number
  readonly reason: string
}

/** Why it cannot be purged now; null: it can. */
export const purgeBarred = ({
  node,
  survey: { endMs, hinders },
  livedMs,
  nowMs,
}: Pick<PurgeFacts, 'node' | 'survey' | 'livedMs' | 'nowMs'>): Refusal | null => {
  const { id, membership } = node.value
  const no = (why: string): Refusal => refuse('NODE_STATE_CONFLICT', `${id} cannot be purged: ${why}`)
  if (membership.kind !== 'revoked') return no(`it is ${membership.kind}, and only a revoked node can`)
  if (endMs >= nowMs) return no(`a certificate of it, or its denial, is good until ${isoTime(endMs)}`)
  // Without the time that it is by then: a plan that names it would be stale at once.
  if (endMs >= livedMs) {
    return no(
      `its last certificate has ended at ${isoTime(endMs)}, and by the time for which planes have run on this store, ` +
        `which no wrong clock changes, that is still to come`,
    )
  }
  return hinders === null ? null : no(hinders)
}

const changeOf = (steps: readonly PurgeStep[]) => ({
  reads: steps.map(({ read }) => read),
  writes: steps.flatMap(({ write }) => write ?? []),
  removes: steps.filter(({ write }) => write === null).map(({ read: { row, key } }) => ({ row, key })),
})

/** What is committed before `decidePurge`, where there is more than one commit should hold. Only what it would do as well. */
export const purgePart = (facts: PurgeFacts, steps: readonly PurgeStep[]): Change => {
  const { node, by, nowMs } = facts
  const { id, epoch } = node.value
  const { reads, writes, removes } = changeOf(steps)
  const body = { reason: boundedText(facts.reason), ...countSteps(steps) }
  return {
    // A registration in between ends the purge.
    ...{ reads: [readOf('node', id, node), ...reads], writes, removes },
    entries: [entry(by, nowMs, 'node.purging', { node: id, epoch }, body)],
  }
}

/** `before`: what parts have purged. All that is left has to fit into this commit. */
export const decidePurge = (facts: PurgeFacts, before: PurgeCounts): Decided | Refusal => {
  const { node, former, survey, by, nowMs } = facts
  const barred = purgeBarred(facts)
  if (barred !== null) return barred
  const { id, epoch, tenure, counter } = node.value
  const { reads, writes, removes } = changeOf(survey.first)
  const purged = { name: former.key, epoch, tenure, counter, version: node.version, purgedAtMs: nowMs }
  const body = {
    ...{ reason: boundedText(facts.reason), name_hash: former.key, counter },
    ...addCounts(before, survey.counts),
  }
  return decided({
    reads: [readOf('node', id, node), ...reads, readOf('purged-node', former.key, former.row)],
    writes: [{ put: 'purged-node', value: purged }, ...writes],
    removes: [{ row: 'node', key: id }, ...removes],
    entries: [entry(by, nowMs, 'node.purged', { node: id, epoch }, body)],
  })
}

/** In words, for a plan. */
export const purgeWords = ({ counts: { keys_kept: keys, ...removed } }: Pick<PurgeSurvey, 'counts'>): string =>
  [
    'its record is removed for good: name, hardware, observations',
    ...Object.entries(removed).flatMap(([name, count]) => (count === 0 ? [] : [counted(count, name.slice(0, -1))])),
  ].join(', ') + `; its epoch and ${counted(keys, 'key')} stay under a hash of its name`
