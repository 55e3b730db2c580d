// Several real planes over one PostgreSQL, each with a data folder of its own.

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Scope } from './cleanup.ts'
import { startPlane, type Plane, type PlaneOptions } from './start-plane.ts'
import { tempFolder } from './temp-folder.ts'

/** `env`: where the database is, as `TestDatabase` and `PatroniCluster` say it. Planes are numbered from 1 on. */
export const startReplicaPlanes = async (
  t: Scope,
  count: number,
  env: Readonly<Record<string, string>>,
  optionsOf: PlaneOptions | ((number: number) => PlaneOptions) = {},
): Promise<readonly Plane[]> => {
  const folder = tempFolder(t)
  const sealKey = path.join(folder, 'seal.key')
  fs.writeFileSync(sealKey, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const start = (number: number): Promise<Plane> => {
    const options = typeof optionsOf === 'function' ? optionsOf(number) : optionsOf
    return startPlane(t, {
      ...options,
      data: path.join(folder, `plane-${number}`),
      env: { ...env, ...options.env },
      args: ['--store', 'postgres', '--seal-key', sealKey, ...(options.args ?? [])],
    })
  }
  const first = await start(1)
  // The one that made the domain has the administrator's key; an operator hands it to the others.
  const others = Array.from({ length: count - 1 }, (_, at) => at + 2)
  for (const number of others) {
    fs.mkdirSync(path.join(folder, `plane-${number}`), { mode: 0o700 })
    fs.copyFileSync(path.join(first.data, 'admin.key'), path.join(folder, `plane-${number}`, 'admin.key'))
  }
  return [first, ...(await Promise.all(others.map(start)))]
}
