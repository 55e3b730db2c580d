// Several replicas on one real PostgreSQL, as tests of what happens between them need it.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import { migrations } from '#plane/store/postgres/migrations.ts'
import type { Committed, HeadSigner, JournalQuery, Store, StoredEntry } from '#plane/store/contract/store.ts'
import type { PgConnection, PostgresTarget } from '#platform/postgres.ts'
import { cleanup } from '../process/cleanup.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { makeSigner, openPostgresStoreOn, type StoreOptions } from './harness.ts'

export type Replicated = {
  readonly target: PostgresTarget
  readonly signer: HeadSigner
  /** One more replica; closed with the test. */
  open(more?: StoreOptions, by?: PostgresTarget): Promise<Store>
  /** Another client of the database. */
  readonly connection: PgConnection
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export const replicated = async (t: TestContext, signer = makeSigner()): Promise<Replicated> => {
  const { target, connect } = await postgresDatabase(t)
  const connection = await connect()
  let statements = 0
  return {
    target,
    signer,
    connection,
    async open(more = {}, by = target) {
      const store = await openPostgresStoreOn(by, signer, more)
      cleanup(t, () => store.close())
      return store
    },
    sql: async (text) => (await connection.run({ name: `test-${statements++}`, text })).rows,
  }
}

/** An empty database gets the schema of an earlier release, as that release has made it. */
export const makeSchema = (connection: PgConnection, schema: number): Promise<void> =>
  connection.exec(`BEGIN; ${migrations.slice(0, schema).join('')}
    CREATE TABLE muster_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), application BIGINT NOT NULL, version INTEGER NOT NULL);
    INSERT INTO muster_schema VALUES (1, ${0x4d535452}, ${schema}); COMMIT`)

export const committed = async (store: Store, wanted: Change): Promise<Committed> => {
  const outcome = await store.commit(wanted)
  assert(outcome !== 'lost-race', 'this commit has nobody to lose to')
  return outcome
}

export const everything: JournalQuery = { after: null, last: null, limit: 1000, node: null, type: null }

/** Page after page, as a follower reads. */
export const readAll = async (
  { journal }: Pick<Store, 'journal'>,
  query: Partial<JournalQuery> = {},
): Promise<readonly StoredEntry[]> => {
  const all: StoredEntry[] = []
  let after = query.after ?? null
  for (;;) {
    const page = await journal.read({ ...everything, ...query, after })
    if (page.length === 0) return all
    all.push(...page)
    after = page.at(-1)?.cursor ?? after
  }
}

/** Every chain from 1 on without a gap, and no operation twice. */
export const assertGapless = (entries: readonly StoredEntry[]): void => {
  const operations = entries.map(({ entry }) => entry.operation)
  assert.equal(new Set(operations).size, operations.length, 'an entry was read twice')
  for (const [chain, run] of Map.groupBy(entries, ({ entry }) => entry.chain))
    assert.deepEqual(
      run.map(({ entry }) => entry.sequence),
      run.map((_, at) => at + 1),
      `chain ${chain}`,
    )
}
