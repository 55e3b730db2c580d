// What the journal has ended for good, and whether overlays have MACs yet. An older row that is put back into the database has a good MAC,
// so a MAC alone does not say that a right is still there. Entries need no proof here: one that an attacker adds takes a right away and gives none.

import type { RowKind } from '#domain/core/change.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import { isOver, type IssuerMigration } from '#domain/issuers/migration.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { rolloutLifeMs, type Rollout } from '#domain/tasks/rollout.ts'
import { isVerifier, type TaskSigners } from '#domain/tasks/signers.ts'
import { taskLifeLimitMs, type Task } from '#domain/tasks/task.ts'
import type { Worker } from '#domain/workers/worker.ts'
import type { WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import type { Core } from '#plane/core/core.ts'
import { pages } from '#plane/core/pages.ts'
import type { JournalReader, StoredEntry } from '#plane/store/contract/store.ts'
import { isoTime } from '#platform/clock.ts'

export type EndedRights = {
  /** The row says that something is there, and the journal has said that it ended. */
  contradicts(kind: RowKind, value: unknown): boolean
  /** What overlays start has a MAC from here on: all that there was got one before the first task signer was made. */
  overlaysAdopted(): boolean
}

/** What the entry ends, as `KIND KEY`. */
const endOf = ({ type, body }: Pick<JournalEntry, 'type' | 'body'>): string | null => {
  switch (type) {
    case 'operator_key.revoked':
      return `operator-key ${String(body['key_id'])}`
    case 'worker.revoked':
      return `worker ${String(body['worker'])}`
    case 'worker.issuer_removed':
      return `worker-issuer ${String(body['name'])} ${String(body['since'])}`
    case 'issuer.retired':
      return `outside-issuer ${String(body['issuer'])}`
    case 'issuer.migration_ended':
      return `issuer-migration ${String(body['migration'])}`
    case 'signer.withdrawn':
      return `task-signers ${String(body['key'])}`
    case 'task.cancelled':
      return `task ${String(body['task'])}`
    case 'rollout.cancelled':
      return `task-rollout ${String(body['rollout'])}`
    default:
      return null
  }
}

const forGood = [
  'operator_key.revoked',
  'worker.revoked',
  'worker.issuer_removed',
  'signer.withdrawn',
  'issuer.retired',
  'issuer.migration_ended',
] as const satisfies readonly EntryType[]

const hourMs = 3_600_000

/** For how long after it was cancelled something could still run, with more than clocks may differ. Of what is older nothing is kept here. */
const forDays = {
  'task.cancelled': taskLifeLimitMs + hourMs,
  'rollout.cancelled': rolloutLifeMs + hourMs,
} as const satisfies Partial<Readonly<Record<EntryType, number>>>
const forDaysTypes = Object.keys(forDays) as readonly (keyof typeof forDays)[]
/** Looked through when so many more have come. */
const prunedEach = 50_000

const standing: { readonly [K in RowKind]?: (value: never) => readonly string[] } = {
  'operator-key': ({ id, revokedAtMs }: OperatorKey) => (revokedAtMs === null ? [`operator-key ${id}`] : []),
  worker: ({ id, revoked }: Worker) => (revoked === null ? [`worker ${id}`] : []),
  'worker-issuer': ({ name, createdAtMs, removedAtMs }: WorkerIssuer) =>
    removedAtMs === null ? [`worker-issuer ${name} ${isoTime(createdAtMs)}`] : [],
  'outside-issuer': ({ id, state }: OutsideIssuer) => (state.kind === 'retired' ? [] : [`outside-issuer ${id}`]),
  'issuer-migration': (migration: IssuerMigration) => (isOver(migration) ? [] : [`issuer-migration ${migration.id}`]),
  'task-signers': ({ signers }: TaskSigners) => signers.filter(isVerifier).map(({ key }) => `task-signers ${key}`),
  task: ({ id, state }: Task) => (state.kind === 'queued' || state.kind === 'dispatched' ? [`task ${id}`] : []),
  'task-rollout': ({ id, state }: Rollout) =>
    state.kind === 'running' || state.kind === 'held' ? [`task-rollout ${id}`] : [],
}

export const openEndedRights = async ({ store, feed, clock }: Pick<Core, 'store' | 'feed' | 'clock'>) => {
  const lasting = new Set<string>()
  /** And until when it matters. */
  const recent = new Map<string, number>()
  let hasSigners = false
  const take = (entry: JournalEntry): void => {
    if (entry.type === 'signer.created') hasSigners = true
    const end = endOf(entry)
    if (end === null) return
    const type = forDaysTypes.find((one) => one === entry.type)
    if (type === undefined) return void lasting.add(end)
    recent.set(end, entry.atMs + forDays[type])
    if (recent.size % prunedEach !== 0) return
    const nowMs = clock.nowMs()
    for (const [one, untilMs] of recent) if (untilMs < nowMs) recent.delete(one)
  }
  // Before anything is read: what is committed meanwhile is then seen twice, and never missed.
  feed.subscribe('ended rights', ({ entries }) => {
    for (const { entry } of entries) take(entry)
  })
  for await (const entry of entriesSince(store.journal, forGood, null)) take(entry)
  const [first] = await store.journal.read({ after: null, last: null, limit: 1, node: null, type: ['signer.created'] })
  if (first !== undefined) take(first.entry)
  for (const type of forDaysTypes) {
    const since = await store.journal.placeBefore(clock.nowMs() - forDays[type])
    for await (const entry of entriesSince(store.journal, [type], since)) take(entry)
  }

  const ended: EndedRights = {
    contradicts: (kind, value) =>
      (standing[kind]?.(value as never) ?? []).some((one) => lasting.has(one) || recent.has(one)),
    overlaysAdopted: () => hasSigners,
  }
  return ended
}

async function* entriesSince(
  journal: Pick<JournalReader, 'read'>,
  type: readonly EntryType[],
  since: StoredEntry['cursor'] | null,
): AsyncGenerator<JournalEntry, void, void> {
  const reading = {
    limit: 500,
    read: (after: StoredEntry['cursor'] | null, limit: number) =>
      journal.read({ after: after ?? since, last: null, limit, node: null, type }),
    placeOf: ({ cursor }: StoredEntry) => cursor,
  }
  for await (const page of pages(reading)) for (const { entry } of page) yield entry
}
