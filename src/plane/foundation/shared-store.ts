// The store of replicas that share one: PostgreSQL, with the sealed keys of the domain in it. A replica with another sealing key
// than the domain's is refused before anything is written.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { Clock } from '#platform/clock.ts'
import { pgTrouble, type PgConnection, type PostgresTarget, type Prepared } from '#platform/postgres.ts'
import { processName } from '#platform/this-process.ts'
import { openKeySeal } from '#plane/keys/operator-key-seal.ts'
import { openRowSeal } from '#plane/seals/row-seal.ts'
import { openSharedCustody } from '#plane/keys/shared-custody.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { findSealingKey, refuseExposed } from '#plane/keys/sealing-key.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openPostgresStore } from '#plane/store/postgres/open-postgres-store.ts'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { openSealedKeys } from '#plane/store/postgres/sealed-keys.ts'
import { clockOffset, clockTrouble, instantOf } from '#plane/store/postgres/standing-at.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { ClockOff } from './clock-check.ts'
import { ConfigProblem, type PlaneConfig } from '#plane/config/config.ts'
import { examineKeys, refuseFolderOfDomain, refuseOtherDomain, type StoredFacts } from './data-folder.ts'
import type { OpenedStore, StartOptions } from './foundation.ts'
import { checkSealing, openSharedHeadSigner } from './journal-key.ts'

/** The database cannot be had now; it may be there in a moment. */
export class DatabaseUnreachable extends Error {
  readonly code = 'DATABASE_UNREACHABLE'
  readonly next: string

  constructor({ hosts }: PostgresTarget, cause: unknown) {
    const where = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
    super(`no PostgreSQL that can be written to answers at ${where}: ${reasonOf(cause)}`, { cause })
    this.name = 'DatabaseUnreachable'
    this.next = `Check that it runs there and takes connections from here: psql -h ${hosts[0]?.host ?? 'HOST'} -p ${hosts[0]?.port ?? 'PORT'}; with several hosts, that one of them is the primary`
  }
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

export const openSharedStore = async (
  base: StoreCore,
  config: PlaneConfig,
  target: PostgresTarget,
  witness: JournalWitness,
  domainName: () => string,
  { replacing, examined, needsDomain }: StartOptions,
): Promise<OpenedStore> => {
  const access = openPgAccess(base, target)
  try {
    const { kept, stored } = await lookAt(access, target, (connection) =>
      refuseSkewed(base.clock, connection, config.clockToleranceMs),
    )
    const { dataFolder, sealKeyFile: keyFile, credentialsFolder, issuerKey } = config
    const hasDomain = stored.domain !== null
    if (!hasDomain && needsDomain !== null) throw new ConfigProblem(needsDomain)
    // An empty folder belongs to a new replica, with any database.
    if (!hasDomain) refuseFolderOfDomain(dataFolder)
    const whenNone = kept.size === 0 && !hasDomain ? 'make' : 'refuse'
    const sealing = findSealingKey({ dataFolder, keyFile, credentialsFolder }, base.random, whenNone)
    refuseExposed(sealing, dataFolder, credentialsFolder)
    checkSealing(kept, sealing.key)
    // Before there is a lease, by which this plane could come to lead a domain that is not its own.
    if (hasDomain) {
      refuseOtherDomain(dataFolder, stored.issuers)
      examineKeys(kept, stored, { issuerKey, nowMs: base.clock.nowMs(), replacing, examined })
    }
    const migrated = await migrateDatabase(access)
    const keys = openSealedKeys(access)
    const signer = await openSharedHeadSigner(
      keys,
      sealing.key,
      hasDomain && !replacing.includes('journal') ? 'refuse' : 'make',
    )
    const elsewhere = openKeysElsewhere({ ...config.tokens, credentialsFolder }, base)
    const custody = await openSharedCustody(keys, sealing, elsewhere)
    const store = await openPostgresStore(
      base,
      { access, author: { signer, domainName }, witness, migrated },
      { name: processName(), clockToleranceMs: config.clockToleranceMs },
    )
    const keySeal = openKeySeal(sealing.key, domainName)
    return { store, custody, keySeal, rowSeal: openRowSeal(sealing.key, domainName), undo: () => {} }
  } catch (error) {
    await access.close()
    throw error instanceof StoreFault ? new DatabaseUnreachable(target, error) : error
  }
}

/** Looks without touching. */
const lookAt = async (
  access: PgAccess,
  target: PostgresTarget,
  check: (connection: PgConnection) => Promise<void>,
): Promise<{ readonly kept: ReadonlyMap<string, string>; readonly stored: StoredFacts }> => {
  const connection = await access.connect('look').catch((error: unknown) => {
    throw pgTrouble(error) === 'refused' ? refused(target, error) : new DatabaseUnreachable(target, error)
  })
  try {
    await check(connection)
    const { version } = await schemaOf(connection)
    if (version === null) return { kept: new Map(), stored: { domain: null, issuers: [], headKeyId: null } }
    const stored = await storedIn(connection)
    // Behind the rows: a key is kept before its row.
    return { kept: await openSealedKeys(access).all(), stored }
  } finally {
    await connection.end()
  }
}

const storedIn = async (connection: PgConnection): Promise<StoredFacts> => {
  const docs = async (table: 'domain' | 'issuer'): Promise<readonly unknown[]> => {
    const { rows } = await connection.run({ name: `look-${table}`, text: `SELECT doc FROM ${table}` })
    return rows.map(({ doc }) => (typeof doc === 'string' ? JSON.parse(doc) : doc) as unknown)
  }
  const [domain] = (await docs('domain')) as { readonly name: string }[]
  const { rows: newest } = await connection.run(askHeadKey)
  const headKeyId = (newest[0]?.['keyId'] as string | undefined) ?? null
  return { domain: domain?.name ?? null, issuers: (await docs('issuer')) as IssuerRow[], headKeyId }
}

/** Of one chain; all replicas sign with the same key. */
const askHeadKey: Prepared = {
  name: 'look-head-key',
  text: 'SELECT key_id AS "keyId" FROM journal WHERE key_id IS NOT NULL ORDER BY chain DESC, sequence DESC LIMIT 1',
}

/** Before anything is written: a domain, or a certificate, made by a wrong clock would have to be outlived. */
const refuseSkewed = async (clock: Clock, connection: PgConnection, toleranceMs: number): Promise<void> => {
  const sent = instantOf(clock)
  const { rows } = await connection.run(askTime)
  const received = instantOf(clock)
  const trouble = clockTrouble(clockOffset(sent, received, Number(rows[0]?.['nowMs'])), received, toleranceMs)
  if (trouble !== null) throw new ClockOff(trouble, setEither)
}

const setEither =
  "Set the clock that is wrong, this machine's (timedatectl set-ntp true) or the database's, then start the plane"

const askTime: Prepared = {
  name: 'ask-time',
  text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs"',
}

const refused = ({ user, database }: PostgresTarget, error: unknown): StoreRefused =>
  new StoreRefused(
    'DATABASE_REFUSED',
    `the user ${user} cannot be brought into the database ${database}: ${reasonOf(error)}`,
    'Check user, password, database and TLS: the file named by MUSTER_STORE_FILE (sslrootcert=FILE for a CA of your own), or PGUSER, PGPASSFILE, PGDATABASE, PGSSLROOTCERT; the user has to own the database',
  )
