// The schema while replicas of two releases run. A plane runs on the schema of the release before until every replica with a
// lease knows the newest one; then the leader takes the steps. Until then a replica of the release before finds its schema when
// it is started again. See docs/decisions/schema-upgrades.md.

import type { RowKind } from '#domain/core/change.ts'
import type { Log } from '#platform/log.ts'
import type { Prepared } from '#platform/postgres.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { UnfinishedUpgrade } from '#plane/store/contract/store.ts'
import type { PgAccess } from './pg-access.ts'
import type { Migrated } from './run-migrations.ts'
import { kindsSince, newestSchema, oldestSchema, partsSince, releaseOfSchema, type SchemaPart } from './schema-since.ts'

/** As its lease has it. */
export type LeasedRelease = { readonly name: string; readonly version: string | null }

/** The replicas that keep a store on its schema, by name and release; empty: the steps can be taken. */
export const waitsFor = (schema: number | null, leased: readonly LeasedRelease[]): readonly string[] =>
  schema === null || schema < oldestSchema || schema >= newestSchema
    ? []
    : leased
        .filter(({ version }) => !knowsSchema(version ?? '', newestSchema))
        .map(({ name, version }) => `${name} (${version ?? 'no release'})`)

/** What is no release is taken for an old one: a step that waits does less harm than a replica that cannot start. */
export const knowsSchema = (release: string, schema: keyof typeof releaseOfSchema): boolean => {
  const given = parts(release)
  const since = parts(releaseOfSchema[schema])
  if (given === null || since === null) return false
  const differing = since.findIndex((part, at) => part !== given[at])
  return differing === -1 || (given[differing] as number) > (since[differing] as number)
}

const parts = (release: string): readonly number[] | null => {
  const found = /^(\d+)\.(\d+)\.(\d+)/.exec(release)
  return found === null ? null : found.slice(1).map(Number)
}

/** The schema this replica reads and writes by. The database may be ahead of it for a moment, never behind. */
export type SchemaInUse = {
  version(): number
  /** It is not the newest, so it can change under a group of commits. */
  isUnfinished(): boolean
  has(part: RowKind | SchemaPart): boolean
  unfinished(): UnfinishedUpgrade | null
  /** What was found in the database; `waitsFor` absent: that was not looked at. A schema is never taken back. */
  learn(version: number, waitsFor?: readonly string[]): void
  /** Why the last attempt to take the steps failed; null: it did not. */
  attempted(failure: string | null): void
  /** Called once; never where it is the newest already. */
  onUpgraded(run: () => void): void
}

export const openSchemaInUse = (opened: Pick<Migrated, 'to' | 'waitsFor'>, log: Log): SchemaInUse => {
  let schema = opened.to
  let waiting = opened.waitsFor
  let failure: string | null = null
  const listeners: (() => void)[] = []
  const tell = (): void => {
    log.info({ schema }, 'the schema of the store has been upgraded')
    for (const run of listeners.splice(0)) run()
  }
  if (schema < newestSchema)
    log.warn(
      { schema, newest: newestSchema, replicas: waiting },
      waiting.length === 0
        ? 'another replica is upgrading the schema of the store'
        : 'replicas of an older release run: the schema of the store is upgraded when they have stopped',
    )
  return {
    version: () => schema,
    isUnfinished: () => schema < newestSchema,
    has: (part) => schema >= (part in kindsSince ? kindsSince[part as RowKind].schema : partsSince[part as SchemaPart]),
    unfinished: () => (schema < newestSchema ? { schema, newest: newestSchema, waitsFor: waiting, failure } : null),
    learn(version, found = waiting) {
      waiting = found
      if (version <= schema) return
      schema = version
      if (schema >= newestSchema) tell()
    },
    attempted: (why) => void (failure = why),
    onUpgraded: (run) => void listeners.push(run),
  }
}

/** After a step that failed: it holds up commits, so it is not tried again at once. */
const retryAfterLooks = 30

/**
 * Returns a function that looks once, and takes the steps where this replica leads. It is to be called once a second. `migrate` is
 * safe for any replica at any time: it looks again under a lock. So it does no harm that two replicas think they lead.
 */
export const openUpgrade = (
  log: Log,
  access: Pick<PgAccess, 'read'>,
  schema: SchemaInUse,
  replicas: Pick<Replicas, 'leadership'>,
  migrate: () => Promise<Migrated>,
): (() => Promise<void>) => {
  let looking: Promise<void> | null = null
  let rest = 0

  const look = async (): Promise<void> => {
    const { rows } = await access.read(askUpgrade)
    const { version, leased } = rows[0] as { readonly version: number; readonly leased: string }
    const waiting = waitsFor(version, JSON.parse(leased) as readonly LeasedRelease[])
    schema.learn(version, waiting)
    if (!schema.isUnfinished() || waiting.length > 0 || replicas.leadership() === null || rest-- > 0) return
    const migrated = await migrate().catch((error: unknown) => {
      rest = retryAfterLooks
      schema.attempted(error instanceof Error ? error.message : String(error))
      log.warn({ err: error }, 'the schema could not be upgraded; it is tried again')
      return null
    })
    if (migrated === null) return
    schema.attempted(null)
    schema.learn(migrated.to, migrated.waitsFor)
  }

  return () => {
    if (!schema.isUnfinished()) return Promise.resolve()
    looking ??= look()
      // Trouble of the database is reported by health.ts.
      .catch((error: unknown) => log.debug({ err: error }, 'the schema could not be looked at; it is tried again'))
      .finally(() => (looking = null))
    return looking
  }
}

const askUpgrade: Prepared = {
  name: 'upgrade-look',
  text: `SELECT version, (SELECT coalesce(json_agg(json_build_object('name', name, 'version', replica.version)), '[]')::text
      FROM replica WHERE expires_at > clock_timestamp()) AS leased
    FROM muster_schema WHERE id = 1`,
}
