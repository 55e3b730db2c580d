// What one thread says to another one. Waking a thread costs more than a message does, and what comes together is worked on together there.

import { systemClock } from './clock.ts'
import { gather } from './gather.ts'
import { systemTimers } from './timers.ts'

/** A message waits this long at most for others: nobody is to notice it. */
const longestMs = 2

/** Collects what is said while this thread is busy, in order, into one message. */
export const openThreadOutbox = <M>(send: (messages: readonly M[]) => void): ((message: M) => void) => {
  const core = { clock: systemClock, timers: systemTimers }
  let waiting: M[] = []
  const flush = (): void => {
    const messages = waiting
    waiting = []
    send(messages)
  }
  return (message) => {
    if (waiting.push(message) === 1) gather(core, { longestMs }, flush)
  }
}
