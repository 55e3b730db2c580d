// The time that a statement with a nonce of this helper's has proven (ruling 16): for an hour, by a clock that cannot be set.

import type { Clock } from '#platform/clock.ts'
import type { Random } from '#platform/random.ts'
import { toleranceMs } from './judge-statement.ts'

export type ProvenTime = {
  /** For one statement. It is waited for five minutes: for as long as that the time that it proves may be behind. */
  newNonce(): string
  nonces(): readonly string[]
  prove(proof: { readonly nonce: string; readonly timeMs: number }): void
  /**
   * Null: nothing was proven within the last hour, or the clock of the host has moved otherwise since. It was set, or the machine slept,
   * which the other clock does not count: what was proven may be late by as much.
   */
  nowMs(): number | null
  /** A statement that was issued then has been accepted, or an earlier helper knew that it was that late. */
  noEarlierThan(timeMs: number): void
  /** It is that late at least, however far back the clock of the host is held; 0: nothing says so. */
  floorMs(): number
}

const waitedForMs = 5 * 60_000
const provenForMs = 3_600_000
const mostNonces = 8

export const openProvenTime = (clock: Pick<Clock, 'monotonicMs' | 'nowMs'>, random: Random): ProvenTime => {
  const made = new Map<string, number>()
  let proven: { readonly timeMs: number; readonly atMs: number; readonly hostMs: number } | null = null
  let floor: { readonly timeMs: number; readonly atMs: number } | null = null
  const floorMs = (): number => (floor === null ? 0 : floor.timeMs + clock.monotonicMs() - floor.atMs)
  const waiting = (): readonly string[] =>
    [...made].filter(([, atMs]) => clock.monotonicMs() - atMs <= waitedForMs).map(([nonce]) => nonce)
  return {
    newNonce: () => {
      const nonce = random.bytes(18).toString('base64url')
      made.set(nonce, clock.monotonicMs())
      for (const old of [...made.keys()].slice(0, -mostNonces)) made.delete(old)
      return nonce
    },
    nonces: waiting,
    prove: ({ nonce, timeMs }) => {
      made.delete(nonce)
      proven = { timeMs, atMs: clock.monotonicMs(), hostMs: clock.nowMs() }
      // Also backwards: a plane whose clock was years ahead once does not close its hosts for years.
      floor = proven
    },
    noEarlierThan: (timeMs) => {
      if (timeMs > floorMs()) floor = { timeMs, atMs: clock.monotonicMs() }
    },
    floorMs,
    nowMs: () => {
      if (proven === null) return null
      const sinceMs = clock.monotonicMs() - proven.atMs
      const apartMs = Math.abs(clock.nowMs() - proven.hostMs - sinceMs)
      return sinceMs > provenForMs || apartMs > toleranceMs ? null : proven.timeMs + sinceMs
    },
  }
}
