// A copy of all a stopped plane has, and putting it back: what an operator does with a backup.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { connectPostgres, type PostgresTarget } from '#platform/postgres.ts'
import { cleanup, type Scope } from './cleanup.ts'
import type { Plane } from './start-plane.ts'
import { onPostgres, storeEnvironment } from './store-under-test.ts'
import { tempFolder } from './temp-folder.ts'

export type StoreCopy = {
  /** The plane is as it was; as often as it is asked for. */
  restore(): Promise<void>
}

export const copyStore = async (t: Scope, { data }: Pick<Plane, 'data'>): Promise<StoreCopy> => {
  const kept = path.join(tempFolder(t), 'copy')
  fs.cpSync(data, kept, { recursive: true, preserveTimestamps: true })
  const restoreDatabase = onPostgres() ? await copyDatabase(t, await storeEnvironment(t, data)) : async () => {}
  return {
    async restore() {
      fs.rmSync(data, { recursive: true })
      fs.cpSync(kept, data, { recursive: true, preserveTimestamps: true })
      await restoreDatabase()
    },
  }
}

const copyDatabase = async (t: Scope, env: Readonly<Record<string, string>>): Promise<() => Promise<void>> => {
  const { PGHOST: host = '', PGPORT: port = '', PGUSER: user = '', PGDATABASE: name = '' } = env
  const target: PostgresTarget = {
    hosts: [{ host, port: Number(port) }],
    database: 'postgres',
    user,
    password: async () => null,
    tls: null,
  }
  const connection = await connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 5000 })
  await connection.exec(`CREATE DATABASE ${name}_copy TEMPLATE ${name}`)
  cleanup(t, async () => {
    await connection.exec(`DROP DATABASE ${name}_copy`)
    await connection.end()
  })
  return async () => {
    await connection.exec(`DROP DATABASE ${name} WITH (FORCE)`)
    await connection.exec(`CREATE DATABASE ${name} TEMPLATE ${name}_copy`)
  }
}
