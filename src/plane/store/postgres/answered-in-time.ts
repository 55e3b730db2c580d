// The client's own deadline. A statement is never cancelled: while it waits for a standby, that would make it look
// committed.

import type { PgConnection } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'

/** `answeredInTime` with one limit for the statements of one part. */
export type InTime = <T>(connection: PgConnection, answer: Promise<T>) => Promise<T>

export const answersWithin =
  (timers: Timers, withinMs: number): InTime =>
  (connection, answer) =>
    answeredInTime(timers, connection, withinMs, answer)

/** A connection that does not answer in time is cut: other statements on it would not be answered either. */
export const answeredInTime = async <T>(
  timers: Timers,
  connection: PgConnection,
  withinMs: number,
  answer: Promise<T>,
): Promise<T> => {
  let cancel = (): void => {}
  const late = new Promise<never>((_resolve, reject) => {
    cancel = timers.after(withinMs, () => {
      reject(new Error(`no answer within ${withinMs} ms`))
      connection.destroy()
    })
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    cancel()
  }
}
