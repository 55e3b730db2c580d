// Time passes for a plane, also for one that shares its store: that one has a lease, and a jump past its end would mean
// that it had been stopped for so long.

import { connectPostgres, type PgConnection } from '#platform/postgres.ts'
import { eventually } from './eventually.ts'
import type { FakeTime } from './fake-time.ts'
import type { Plane } from './start-plane.ts'
import { databaseOf } from './store-under-test.ts'

/** Of the ten seconds after which a plane that has received nothing is behind. */
const stepMs = 4000

export const passTime = async (
  time: Pick<FakeTime, 'advance'>,
  { data }: Pick<Plane, 'data'>,
  ms: number,
): Promise<void> => {
  const shared = databaseOf(data)
  if (shared === null) return time.advance(ms)
  const { target } = await shared
  const connection = await connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 5000 })
  for (let left = ms; left > 0; left -= stepMs) {
    const before = await leaseEnds(connection)
    time.advance(Math.min(left, stepMs))
    await eventually('the lease to be renewed', async () => (await leaseEnds(connection)) > before)
  }
  await connection.end()
}

const leaseEnds = async (connection: PgConnection): Promise<number> => {
  const text = 'SELECT max(extract(epoch FROM expires_at))::float8 AS ends FROM replica'
  return (await connection.run({ name: 'lease-ends', text })).rows[0]?.['ends'] as number
}
