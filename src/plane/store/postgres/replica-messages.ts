// Notifications between replicas, over a connection of its own. None of them is the truth and any of them may be lost: a
// hint says that there is something to read, and the sender of a question handles a missing answer.

import type { PgConnection, Prepared } from '#platform/postgres.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { answersWithin } from './answered-in-time.ts'
import type { Lease } from './lease.ts'
import type { PgAccess } from './pg-access.ts'
import type { ReplicaPace } from './replica-pace.ts'

export type ReplicaMessages = {
  /** A hint that something was committed, for which a caller may wait. Several in a row become one. */
  hint(awaited: boolean): void
  onHint(run: () => void): void
  /** Null: there is no connection. What is too long for a notification throws. */
  send(to: ReplicaNumber, message: string): Promise<void> | null
  onMessage(run: (message: string) => void): void
  /** The number may have changed: from here on messages to the new one are received. */
  listen(): void
  close(): Promise<void>
}

const hints = 'muster_commits'
const channelOf = (replica: ReplicaNumber): string => `muster_replica_${replica}`
/** PostgreSQL takes fewer than 8000 bytes. */
const longestMessage = 7999

/** Receives the messages to the number of the lease, also after that number has changed. */
export const openReplicaMessages = async (
  { clock, timers, log }: Pick<StoreCore, 'clock' | 'timers' | 'log'>,
  access: Pick<PgAccess, 'connect'>,
  lease: Pick<Lease, 'number'>,
  pace: ReplicaPace,
): Promise<ReplicaMessages> => {
  const inTime = answersWithin(timers, pace.answerWithinMs)
  const hintListeners: (() => void)[] = []
  const messageListeners: ((message: string) => void)[] = []
  let connection: PgConnection | null = null
  let listensAs: ReplicaNumber | null = null
  let working: Promise<void> | null = null
  let closed = false

  const received = (channel: string, payload: string): void => {
    if (channel !== hints) messageListeners.forEach((run) => run(payload))
    // Our own notifications come back too, and are ignored.
    else if (payload !== String(lease.number())) hintListeners.forEach((run) => run())
  }
  const connect = async (): Promise<PgConnection> => {
    // A notification is as good as its listeners; none of them reads it after a crash.
    const fresh = await access.connect('messages', { synchronous_commit: 'off' })
    fresh.onNotification(received)
    fresh.onEnd(() => {
      if (connection === fresh) connection = null
    })
    await inTime(fresh, fresh.exec(`LISTEN ${hints}`))
    listensAs = null
    return fresh
  }
  /** Null: it already listens. Statements are carried out in order: a message that is sent after this is received. */
  const listenOn = (now: PgConnection): Promise<void> | null => {
    const number = lease.number()
    if (listensAs === number) return null
    const former = listensAs === null ? '' : `UNLISTEN ${channelOf(listensAs)};`
    listensAs = number
    return inTime(now, now.exec(`${former} LISTEN ${channelOf(number)}`))
  }
  /** Connected, listening under the current number, and answering: a connection can be dead without an error. */
  const check = async (): Promise<void> => {
    const caughtUp = connection !== null
    const now = (connection ??= await connect())
    if (closed) return now.destroy()
    await (listenOn(now) ?? inTime(now, now.exec('SELECT')))
    if (!caughtUp) hintListeners.forEach((run) => run())
  }
  const checkSoon = (): Promise<void> => {
    working ??= check()
      .catch((error: unknown) => {
        log.debug({ err: error }, 'no connection for messages between replicas; it is made again')
        connection?.destroy()
      })
      .finally(() => (working = null))
    return working
  }

  const notify = (channel: string, payload: string): Promise<void> | null => {
    if (Buffer.byteLength(payload) > longestMessage)
      throw new RangeError('a message between replicas is too long for a notification')
    if (connection === null) return null
    const answer = connection.run(notifyStatement, [channel, payload])
    return inTime(connection, answer).then(() => {})
  }

  let hintedAtMs = -Infinity
  let due: { readonly atMs: number; readonly cancel: () => void } | null = null
  const sendHint = (): void => {
    due = null
    hintedAtMs = clock.monotonicMs()
    notify(hints, String(lease.number()))?.catch((error: unknown) => log.debug({ err: error }, 'a hint was lost'))
  }

  await check()
  const stopChecking = timers.every(pace.renewEveryMs, () => void checkSoon())

  return {
    hint(awaited) {
      const atMs = hintedAtMs + (awaited ? pace.hintEveryMs : pace.routineHintEveryMs)
      if (closed || (due !== null && due.atMs <= atMs)) return
      due?.cancel()
      const waitMs = atMs - clock.monotonicMs()
      if (waitMs <= 0) sendHint()
      else due = { atMs, cancel: timers.after(waitMs, sendHint, 'background') }
    },
    onHint: (run) => void hintListeners.push(run),
    send: (to, message) => notify(channelOf(to), message),
    onMessage: (run) => void messageListeners.push(run),
    listen() {
      if (connection === null || closed) return
      const broken = connection
      listenOn(connection)?.catch((error: unknown) => {
        log.debug({ err: error }, 'no connection for messages between replicas; it is made again')
        broken.destroy()
      })
    },
    async close() {
      closed = true
      stopChecking()
      due?.cancel()
      await working
      await connection?.end()
    },
  }
}

const notifyStatement: Prepared = { name: 'messages-notify', text: 'SELECT pg_notify($1, $2)' }
