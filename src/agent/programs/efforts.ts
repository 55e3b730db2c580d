// What is done again until it works: when it may be tried next, and why it failed last.

import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import { fullJitterMs } from '#agent/core/backoff.ts'
import { tidy } from '#agent/core/trouble.ts'
import { LeftBehind } from './publisher.ts'

export type Efforts = {
  mayTry(name: string): boolean
  /** Whether it worked. What it throws is said, once for each reason, and kept until it works. */
  attempt(name: string, act: () => Promise<void>): Promise<boolean>
  /** Null: nothing is wrong with it. */
  failureOf(name: string): string | null
  /** What failed works once the owner of the host has changed something, and not before. */
  isUpToOwner(name: string): boolean
  /** All of it may be tried now. */
  forget(): void
}

type Effort = {
  readonly failure: string
  readonly failures: number
  readonly notBeforeMs: number
  readonly isUpToOwner: boolean
}

const firstRetryMs = 2_000
export const longestRetryMs = 300_000
export const longestFailure = 256

export const openEfforts = (
  { clock, random, log }: Pick<AgentCore, 'clock' | 'random' | 'log'>,
  record: Pick<AgentParts['record'], 'changed'>,
): Efforts => {
  const efforts = new Map<string, Effort>()
  return {
    mayTry: (name) => clock.monotonicMs() >= (efforts.get(name)?.notBeforeMs ?? -Infinity),
    attempt: async (name, act) => {
      const before = efforts.get(name)
      try {
        await act()
        efforts.delete(name)
        if (before !== undefined) log.info({ what: name }, 'an output is as it should be again')
        return true
      } catch (error) {
        const failures = before?.failures ?? 0
        const failure = tidy(error instanceof Error ? error.message : String(error), longestFailure)
        const delayMs = firstRetryMs + fullJitterMs(failures, firstRetryMs, longestRetryMs, random.unit())
        const notBeforeMs = clock.monotonicMs() + delayMs
        const isUpToOwner = error instanceof LeftBehind
        efforts.set(name, { failure, failures: failures + 1, notBeforeMs, isUpToOwner })
        const isNews = failure !== before?.failure
        log[isNews ? 'warn' : 'debug'](
          { what: name, failure, waitMs: Math.round(delayMs) },
          'an output is not as it should be',
        )
        if (isNews) record.changed('programs', 'output_failed', `${name}: ${failure}`)
        return false
      }
    },
    failureOf: (name) => efforts.get(name)?.failure ?? null,
    isUpToOwner: (name) => efforts.get(name)?.isUpToOwner === true,
    forget: () => efforts.clear(),
  }
}
