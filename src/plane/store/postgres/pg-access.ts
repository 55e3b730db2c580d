// How the store gets at its database: reads over a few connections that anybody shares, and connections of their own for
// those who write, wait or listen.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { connectPostgres, pgTrouble } from '#platform/postgres.ts'
import type { PgResult, PgSession, PgValue, PostgresTarget, Prepared } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import { StoreFault } from '../store-errors.ts'

export type PgAccess = {
  /** What is committed. Harmless to repeat, and repeated once when its connection broke. Rejects with a StoreFault. */
  read(statement: Prepared, values?: readonly PgValue[]): Promise<PgResult>
  /** Ends with its owner. Rejects with the driver's error: see `pgTrouble`. */
  connect(purpose: string, settings?: Readonly<Record<string, string>>): Promise<PgSession>
  close(): Promise<void>
}

export type PgAccessDeps = {
  readonly target: PostgresTarget
  readonly log: Log
  readonly timers: Timers
  readonly clock: Clock
}

const mostConnections = 4
const connectWithinMs = 4000
/** A read in all, its repetition included. */
const answeredWithinMs = 5000

export const openPgAccess = (deps: PgAccessDeps): PgAccess => {
  const pool = new Set<Pooled>()
  let closed = false

  const connect: PgAccess['connect'] = (purpose, settings = {}) =>
    connectPostgres(deps.target, { applicationName: `muster ${purpose}`, connectWithinMs, settings })

  const add = (): Pooled => {
    const session = connect('read', { default_transaction_read_only: 'on' })
    const pooled = { session, waiting: 0 }
    pool.add(pooled)
    const leave = (): void => void pool.delete(pooled)
    session.then((it) => {
      it.onEnd(leave)
      if (closed) it.destroy()
    }, leave)
    return pooled
  }

  /** The one with the least to do; another is made only when all have something to do. */
  const pick = (): Pooled => {
    const [idlest] = [...pool].sort((one, other) => one.waiting - other.waiting)
    return idlest !== undefined && (idlest.waiting === 0 || pool.size >= mostConnections) ? idlest : add()
  }

  const attempt = async (statement: Prepared, values: readonly PgValue[], untilMs: number): Promise<PgResult> => {
    const pooled = pick()
    pooled.waiting++
    let cancel = (): void => {}
    const tooLate = new Promise<never>((_resolve, reject) => {
      cancel = deps.timers.after(untilMs - deps.clock.monotonicMs(), () => {
        reject(new Error(`no answer within ${answeredWithinMs} ms`))
        // Nothing that waits on it will be answered either.
        pool.delete(pooled)
        pooled.session.then(
          (session) => session.destroy(),
          () => {},
        )
      })
    })
    try {
      return await Promise.race([tooLate, pooled.session.then((session) => session.run(statement, values))])
    } finally {
      cancel()
      pooled.waiting--
    }
  }

  const read = async (statement: Prepared, values: readonly PgValue[] = []): Promise<PgResult> => {
    if (closed) throw new StoreFault('the store cannot be read', 'it is closed')
    const untilMs = deps.clock.monotonicMs() + answeredWithinMs
    try {
      return await attempt(statement, values, untilMs)
    } catch (error) {
      const over = closed || deps.clock.monotonicMs() >= untilMs
      if (over || pgTrouble(error) !== 'connection') throw new StoreFault('the store cannot be read', error)
      deps.log.debug({ err: error, statement: statement.name }, 'a read is repeated on another connection')
    }
    return attempt(statement, values, untilMs).catch((error: unknown) => {
      throw new StoreFault('the store cannot be read', error)
    })
  }

  return {
    read,
    connect,
    async close() {
      closed = true
      await Promise.all(
        [...pool].map(({ session }) =>
          session.then(
            (it) => it.end(),
            () => {},
          ),
        ),
      )
    },
  }
}

type Pooled = { readonly session: Promise<PgSession>; waiting: number }
