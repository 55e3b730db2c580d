// The frames of a channel that are not handled yet. Frames are handled one after the other, in order; while one waits the socket
// is not read, so that a flood waits in the sender's buffers and not in our memory, and every channel gets its turn before this
// one is read again.

import { turn, type Timers } from '#platform/timers.ts'
import type { Session } from '#plane/sessions/session.ts'

export type Inbox = {
  text(text: string): void
  /** Only the latest is answered, which RFC 6455 §5.5.3 allows. */
  ping(payload: Buffer): void
}

const framesPerTurn = 16

/** `handle` does not reject. */
export const openInbox = (timers: Timers, session: Session, handle: (text: string) => Promise<void>): Inbox => {
  let waiting: string[] = []
  let ping: Buffer | null = null
  let busy = false

  const empty = async (): Promise<void> => {
    busy = true
    session.pause()
    while (session.alive && (waiting.length > 0 || ping !== null)) {
      if (ping !== null) session.pong(ping)
      ping = null
      for (const text of waiting.splice(0, framesPerTurn)) {
        // After the decision to end a channel nothing it has delivered is looked at.
        if (session.alive) await handle(text)
      }
      await turn(timers)
    }
    busy = false
    waiting = []
    session.resume()
  }

  return {
    text(text) {
      waiting.push(text)
      if (!busy) void empty()
    },
    ping(payload) {
      ping = payload
      if (!busy) void empty()
    },
  }
}
