// One replica at a time: a lock of the database that is held by a connection, and let go when that ends, however it
// ends.

import type { Prepared } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { answeredInTime } from './answered-in-time.ts'
import type { PgAccess } from './pg-access.ts'

/** Of session-level advisory locks; see run-migrations.ts. */
const exclusiveLock = 0x4d535452_02
const waitForOthers = '60s'
const answeredWithinMs = 65_000
/** Shorter than others wait: a replica that hangs in here keeps no other from starting. */
const usuallyAloneForMs = 30_000

/** Not to be nested: the inner would wait for the outer. */
export const exclusively = async <T>(
  timers: Timers,
  access: Pick<PgAccess, 'connect'>,
  run: () => Promise<T>,
  aloneForMs = usuallyAloneForMs,
): Promise<T> => {
  const idle_session_timeout = `${aloneForMs}ms`
  const connection = await access
    .connect('exclusive', { lock_timeout: waitForOthers, idle_session_timeout })
    .catch(fault)
  try {
    const taken = connection.run(takeLock, [exclusiveLock])
    await answeredInTime(timers, connection, answeredWithinMs, taken).catch(fault)
    const lost = new Promise<never>((_resolve, reject) => {
      connection.onEnd((error) => reject(new StoreFault('another replica may have begun the same meanwhile', error)))
    })
    return await Promise.race([run(), lost])
  } finally {
    await connection.end()
  }
}

const fault = (error: unknown): never => {
  throw new StoreFault('no turn was had alone', error)
}

const takeLock: Prepared = { name: 'exclusive-lock', text: 'SELECT pg_advisory_lock($1::bigint)' }
