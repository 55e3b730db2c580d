// The store a run of the tests is about: SQLite, or PostgreSQL where scripts/test.ts runs them a second time.

import type { HeadSigner, Store } from '#plane/store/contract/store.ts'
import { openPostgresStoreOn, openStore } from '../store/harness.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { postgresDatabase, type TestDatabase } from './postgres-server.ts'

export const storeVariable = 'MUSTER_TEST_STORE'

export const onPostgres = (): boolean => process.env[storeVariable] === 'postgres'

/** One database a data folder, however often a plane is started on it. */
const databases = new Map<string, Promise<TestDatabase>>()

/** What a plane or a command on this data folder has to have in its environment. */
export const storeEnvironment = async (t: Scope, data: string): Promise<Readonly<Record<string, string>>> => {
  if (!onPostgres()) return {}
  const known = databases.get(data)
  if (known !== undefined) return environmentOf(await known)
  const made = postgresDatabase(t, 'migrated')
  databases.set(data, made)
  cleanup(t, () => void databases.delete(data))
  return environmentOf(await made)
}

/** That of a plane on this data folder; null where it has a file of its own. */
export const databaseOf = (data: string): Promise<TestDatabase> | null => databases.get(data) ?? null

const environmentOf = ({ env }: TestDatabase): Readonly<Record<string, string>> => ({
  MUSTER_STORE: 'postgres',
  ...env,
})

/** Closed after the test. */
export const openStoreUnderTest = async (t: Scope, folder: string, signer: HeadSigner): Promise<Store> => {
  const store = onPostgres()
    ? await openPostgresStoreOn((await postgresDatabase(t, 'migrated')).target, signer)
    : await openStore(folder, signer)
  cleanup(t, () => store.close())
  return store
}
