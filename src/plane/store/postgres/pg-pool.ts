// A few shared connections, made when they are needed and replaced when they break.

import type { PgResult, PgConnection, PgValue, Prepared } from '#platform/postgres.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'

export type PgPool = {
  /** Rejects by `untilMs` (monotonic) at the latest, and with the driver's error before. */
  run(statement: Prepared, values: readonly PgValue[], untilMs: number): Promise<PgResult>
  close(): Promise<void>
}

type Pooled = { readonly connection: Promise<PgConnection>; waiting: number }

export const openPool = (
  { clock, timers }: Pick<StoreCore, 'clock' | 'timers'>,
  most: number,
  connect: () => Promise<PgConnection>,
): PgPool => {
  const pool = new Set<Pooled>()
  let closed = false

  const add = (): Pooled => {
    const connection = connect()
    const pooled = { connection, waiting: 0 }
    pool.add(pooled)
    const leave = (): void => void pool.delete(pooled)
    connection.then((it) => {
      it.onEnd(leave)
      if (closed) it.destroy()
    }, leave)
    return pooled
  }

  /** The one with the least to do; another is made only when all have something to do. */
  const pick = (): Pooled => {
    const [idlest] = [...pool].sort((one, other) => one.waiting - other.waiting)
    return idlest !== undefined && (idlest.waiting === 0 || pool.size >= most) ? idlest : add()
  }

  return {
    async run(statement, values, untilMs) {
      const pooled = pick()
      pooled.waiting++
      let cancel = (): void => {}
      const tooLate = new Promise<never>((_resolve, reject) => {
        cancel = timers.after(untilMs - clock.monotonicMs(), () => {
          reject(new Error('no answer in time'))
          // Nothing that waits on it will be answered either.
          pool.delete(pooled)
          pooled.connection.then(
            (connection) => connection.destroy(),
            () => {},
          )
        })
      })
      try {
        return await Promise.race([tooLate, pooled.connection.then((connection) => connection.run(statement, values))])
      } finally {
        cancel()
        pooled.waiting--
      }
    },
    async close() {
      closed = true
      await Promise.all(
        [...pool].map(({ connection }) =>
          connection.then(
            (it) => it.end(),
            () => {},
          ),
        ),
      )
    },
  }
}
