// The connections of the store: a few shared ones for reads, and separate ones for writers, waits and notifications.

import { openNewestPrimary } from '#platform/newest-primary.ts'
import { connectPostgres, pgTrouble } from '#platform/postgres.ts'
import type { PgResult, PgConnection, PgValue, PostgresTarget, Prepared } from '#platform/postgres.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { openPool } from './pg-pool.ts'

export type PgAccess = {
  /** What is committed. Harmless to repeat, and repeated once when its connection broke. Rejects with a StoreFault. */
  read(statement: Prepared, values?: readonly PgValue[]): Promise<PgResult>
  /**
   * One statement in its own transaction, beside the groups of commits: for facts that no decision is made on, or that may be
   * written twice. Durable when it resolves; when it rejects, with a StoreFault, its outcome is unknown.
   */
  write(statement: Prepared, values?: readonly PgValue[]): Promise<PgResult>
  /** Ends with its owner. Rejects with the driver's error: see `pgTrouble`. */
  connect(purpose: string, settings?: Readonly<Record<string, string>>): Promise<PgConnection>
  close(): Promise<void>
}

const mostReaders = 4
/** So that a stopped replica, or a lock that is never released, holds up no other. */
const writerSettings = { lock_timeout: '4s' }
const connectWithinMs = 4000
/** A write, or a read with its repetition. */
const answeredWithinMs = 5000

export const openPgAccess = (core: Pick<StoreCore, 'clock' | 'timers' | 'log'>, target: PostgresTarget): PgAccess => {
  const { clock, log } = core
  const newest = openNewestPrimary()
  const connect: PgAccess['connect'] = (purpose, settings = {}) =>
    connectPostgres(target, { applicationName: `muster ${purpose}`, connectWithinMs, settings, newest })
  const readers = openPool(core, mostReaders, () => connect('read', { default_transaction_read_only: 'on' }))
  const writers = openPool(core, 1, async () => {
    const connection = await connect('write', writerSettings)
    // A COMMIT with a warning cannot be relied on: its caller gets the error of a broken connection.
    connection.onWarning(() => connection.destroy())
    return connection
  })
  let closed = false

  const read: PgAccess['read'] = async (statement, values = []) => {
    if (closed) throw new StoreFault('the store cannot be read', 'it is closed')
    const untilMs = clock.monotonicMs() + answeredWithinMs
    try {
      return await readers.run(statement, values, untilMs)
    } catch (error) {
      const over = closed || clock.monotonicMs() >= untilMs
      if (over || pgTrouble(error) !== 'connection') throw new StoreFault('the store cannot be read', error)
      log.debug({ err: error, statement: statement.name }, 'a read is repeated on another connection')
    }
    return readers.run(statement, values, untilMs).catch((error: unknown) => {
      throw new StoreFault('the store cannot be read', error)
    })
  }

  const write: PgAccess['write'] = async (statement, values = []) => {
    if (closed) throw new StoreFault('nothing was written', 'the store is closed')
    return writers.run(statement, values, clock.monotonicMs() + answeredWithinMs).catch((error: unknown) => {
      throw new StoreFault('the store cannot be written to', error)
    })
  }

  return {
    read,
    write,
    connect,
    async close() {
      closed = true
      await Promise.all([readers.close(), writers.close()])
    },
  }
}
