// The PostgreSQL of a benchmark: real, its own, durable like any other, and on the same disk as the embedded store.

import { installPeer } from '../scripts/install-peers.ts'
import type { Scope } from '../test/process/cleanup.ts'
import { startPostgres, type PostgresServer, type TestDatabase } from '../test/process/postgres-server.ts'
import { cpuMs } from './process-cost.ts'

export type Database = Pick<TestDatabase, 'env' | 'connect'> & {
  /** Milliseconds of CPU so far, of all its processes. */
  readonly cpuMs: () => number
}

/** A new database a call. */
export type DatabaseServer = (t: Scope) => Promise<Database>

export const startDatabaseServer = async (t: Scope): Promise<DatabaseServer> => {
  if (!(await installPeer('postgres')))
    throw new Error('there is no PostgreSQL on this machine: apt-get install postgresql')
  const server: PostgresServer = await startPostgres(t)
  return async (scope) => ({ ...(await server.database(scope)), cpuMs: () => cpuMs(server.pid) })
}
