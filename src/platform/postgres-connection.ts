// One connection of `pg`, with the guarantees that the store relies on: its end is reported once, and an error either is the
// server's or means that the connection is lost.

import { DatabaseError, type Client } from 'pg'
import type { Socket } from 'node:net'
import type { PgResult, PgConnection, PgValue } from './postgres.ts'
import { systemTimers } from './timers.ts'

/** The connection was never made, or is lost: then the outcome of the last statement is unknown. */
export class PgConnectionLost extends Error {
  constructor(cause: unknown) {
    super(`no connection to PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'PgConnectionLost'
  }
}

const farewellMs = 2000
const int8 = 20

export const openConnection = (client: Client, socket: Socket): PgConnection => {
  const notificationListeners: ((channel: string, payload: string) => void)[] = []
  const warningListeners: ((message: string) => void)[] = []
  const endListeners: ((error: unknown) => void)[] = []
  let end: { readonly error: unknown } | null = null
  const hasEnded = (error: unknown): void => {
    if (end !== null) return
    end = { error }
    socket.destroy()
    for (const run of endListeners) run(error)
  }

  client.setTypeParser(int8, wholeNumber)
  client.on('notification', ({ channel, payload }) =>
    notificationListeners.forEach((run) => run(channel, payload ?? '')),
  )
  // The connection asks for nothing below a warning, and a warning's own name is in the language of the server.
  client.on('notice', (notice) => warningListeners.forEach((run) => run(notice.message ?? '')))
  client.on('error', hasEnded)
  client.on('end', () => hasEnded(new Error('it has ended')))

  /** Statements of one turn are sent in one piece: each piece wakes the server up, and costs as much as a statement. */
  let gathering = false
  const gather = (): void => {
    if (gathering) return
    gathering = true
    const { stream } = client.connection
    stream.cork()
    queueMicrotask(() =>
      process.nextTick(() => {
        gathering = false
        stream.uncork()
      }),
    )
  }

  const refuseIfEnded = (): void => {
    if (end !== null) throw new PgConnectionLost(end.error)
  }
  const ask = async <T>(send: () => Promise<T>): Promise<T> => {
    refuseIfEnded()
    gather()
    const answer = await send().catch((error: unknown) => {
      throw error instanceof DatabaseError ? error : new PgConnectionLost(error)
    })
    // Cut while the answer was being taken in: then it is not to be relied on.
    refuseIfEnded()
    return answer
  }

  return {
    run: ({ name, text }, values = []) =>
      ask(async (): Promise<PgResult> => {
        const { rows, rowCount } = await client.query({ name, text, values: values as PgValue[] })
        return { rows, count: rowCount ?? 0 }
      }),
    exec: (sql) => ask(async () => void (await client.query(sql))),
    onNotification: (run) => void notificationListeners.push(run),
    onWarning: (run) => void warningListeners.push(run),
    onEnd(run) {
      if (end === null) endListeners.push(run)
      else run(end.error)
    },
    get ended() {
      return end !== null
    },
    destroy: () => hasEnded(new Error('it was cut')),
    async end() {
      if (end !== null) return
      // A server that hangs does not answer the end of the connection either.
      const cancel = systemTimers.after(farewellMs, () => void socket.destroy())
      await client.end()
      cancel()
      hasEnded(new Error('it was closed'))
    },
  }
}

const wholeNumber = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} does not fit into a number`)
  return value
}
