// The statement of verifiers that the agent brings to its helper with every task: which task signers count, signed by a key that the host
// has pinned. It is fetched before it is needed, so that a task does not wait for it: at a third of its life, and when the plane
// announces another number. The agent reads its dates and verifies nothing: the helper does.

import { fullJitterMs } from '#agent/core/backoff.ts'
import { pause } from '#agent/core/pause.ts'
import { callPlane } from '#agent/link/plane-client.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { taskVerifiersApi } from '#wire/tasks/task-verifiers-api.ts'
import type { TaskHelper } from './helped-tasks.ts'
import type { TaskingAgent } from './task-link.ts'

export type VerifierStatements = {
  /** The number of the one at hand; null: there is none. */
  number(): number | null
  /** The one at hand, or one that is fetched now. Null: none can be had now. */
  current(): Promise<string | null>
  /** One that carries a nonce of the helper's, and so proves when it was made. Null: none can be had now. */
  fresh(): Promise<string | null>
  /** The plane says that the signers have this number. */
  announced(number: number): void
  /** Fetches what is due until the agent is stopped. */
  keep(): Promise<void>
}

type Held = {
  readonly text: string
  readonly number: number
  /** Of the identity that it was made for. */
  readonly epoch: number
  /** Monotonic: when it is fetched anew. */
  readonly dueAtMs: number
}

const shortestLifeMs = 3_000
/** All nodes hear of a change in the same moment. */
const announcedSpreadMs = 1_000
const firstRetryMs = 500
const retryCapMs = 60_000
const longestPauseMs = 3_600_000

/** `changed`: called when another statement is at hand. */
export const openVerifiers = (
  agent: TaskingAgent,
  identityNow: () => Identity,
  helper: Pick<TaskHelper, 'nonce'>,
  changed: () => void,
): VerifierStatements => {
  const { clock, random, timers, log, signal } = agent
  let held: Held | null = null
  let wanted = 0
  let underWay: { readonly withNonce: boolean; readonly done: Promise<Held | null> } | null = null
  let wake = new AbortController()

  const ask = async (withNonce: boolean): Promise<Held | null> => {
    const nonce = withNonce ? await helper.nonce() : null
    if (withNonce && nonce === null) return null
    const identity = identityNow()
    const answer = await callPlane(agent, identity, { endpoint: taskVerifiersApi.verifiers, json: { nonce } })
    if (answer.kind === 'stopped') return null
    if (answer.kind !== 'answer') {
      log.warn({ code: answer.trouble.code, next: answer.trouble.next }, `no task verifiers: ${answer.trouble.text}`)
      return null
    }
    const said = parseStatement('verifiers', answer.value.statement)?.value
    if (said === undefined) {
      log.warn('the statement of verifiers of the plane cannot be read')
      return null
    }
    const lifeMs = Math.max(shortestLifeMs, said.expires_ms - said.issued_ms)
    const dueAtMs = clock.monotonicMs() + (lifeMs / 3) * (1 - random.unit() / 10)
    held = { text: answer.value.statement, number: said.number, epoch: identity.epoch, dueAtMs }
    wanted = Math.max(wanted, said.number)
    changed()
    return held
  }
  /** One at a time: the helper waits for few nonces, and one statement serves all who wait for it. */
  const fetched = async (withNonce: boolean): Promise<Held | null> => {
    while (underWay !== null) {
      const { done, withNonce: carries } = underWay
      const outcome = await done
      if (carries || !withNonce) return outcome
    }
    const done = ask(withNonce).finally(() => {
      underWay = null
    })
    underWay = { withNonce, done }
    return done
  }
  const isDue = (): boolean =>
    held === null || held.epoch !== identityNow().epoch || held.number < wanted || clock.monotonicMs() >= held.dueAtMs

  return {
    number: () => held?.number ?? null,
    current: async () => {
      if (!isDue()) return held?.text ?? null
      // What is only due may still be good: the helper says so if it is not.
      return ((await fetched(false)) ?? held)?.text ?? null
    },
    fresh: async () => (await fetched(true))?.text ?? null,
    announced: (number) => {
      wanted = Math.max(wanted, number)
      wake.abort()
    },
    keep: async () => {
      let failures = 0
      while (!signal.aborted) {
        wake = new AbortController()
        if (isDue()) failures = (await fetched(false)) === null ? failures + 1 : 0
        const dueInMs = Math.max(0, (held?.dueAtMs ?? 0) - clock.monotonicMs())
        const retryInMs = firstRetryMs + fullJitterMs(failures, firstRetryMs, retryCapMs, random.unit())
        const waitMs = failures === 0 ? dueInMs : retryInMs
        await pause(timers, Math.min(waitMs, longestPauseMs), AbortSignal.any([signal, wake.signal]))
        if (wake.signal.aborted) await pause(timers, announcedSpreadMs * random.unit(), signal)
      }
    },
  }
}
