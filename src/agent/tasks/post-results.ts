// Results on their way to the plane. Each is sent until the plane has acknowledged it, with growing pauses, and only then forgotten by
// the helper, which keeps it over restarts of everything else.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import { pause } from '#agent/core/pause.ts'
import { callPlane } from '#agent/link/plane-client.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { isoTime } from '#platform/clock.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { taskNodeApi } from '#wire/tasks/task-node-api.ts'
import type { HostResult, TaskHelper } from './helped-tasks.ts'
import type { TaskingAgent } from './task-link.ts'

/** `begun`: false where the helper refused it, or the agent could not bring it what it needs. */
export type EndedTask = HostResult & { readonly begun: boolean }

export type Results = {
  /** The same task again changes nothing. */
  add(id: string, type: string, result: EndedTask): void
  waiting(): readonly { readonly id: string; readonly type: string }[]
  /** Sends what there is until the agent is stopped. */
  keep(): Promise<void>
}

type Waiting = {
  readonly type: string
  readonly result: EndedTask
  readonly failures: number
  /** Monotonic. */
  readonly notBeforeMs: number
  /** The plane has it, or will never take it: it is still to be forgotten by the helper. */
  readonly isSettled: boolean
}

const firstRetryMs = 500
const retryCapMs = 60_000
/** More than the helper keeps. */
const mostWaiting = 256

/** Sending it again changes nothing: the plane has a result, or knows no such task of this node and epoch. */
const finalCodes: ReadonlySet<string> = new Set(['TASK_ALREADY_ENDED', 'TASK_NOT_FOUND', 'TASK_NOT_YOURS'])

/** `settled`: called when one is over. */
export const openResults = (
  agent: TaskingAgent,
  identityNow: () => Identity,
  forget: TaskHelper['forget'],
  settled: () => void,
): Results => {
  const { clock, random, timers, record, log, signal } = agent
  const waiting = new Map<string, Waiting>()
  let wake = new AbortController()

  const later = (id: string, one: Waiting, retryAfterMs: number | null): void => {
    const failures = one.failures + 1
    const delayMs = firstRetryMs + fullJitterMs(failures, firstRetryMs, retryCapMs, random.unit())
    const atMs = clock.monotonicMs() + notBeforeMs(delayMs, retryAfterMs, random.unit())
    waiting.set(id, { ...one, failures, notBeforeMs: atMs })
  }
  const settle = async (id: string, one: Waiting): Promise<void> => {
    if ((await forget(id)) === null) later(id, { ...one, isSettled: true }, null)
    else {
      waiting.delete(id)
      settled()
    }
  }
  const failed = async (id: string, one: Waiting, failure: Exclude<PlaneFailure, { kind: 'stopped' }>) => {
    const { code, next, text } = failure.trouble
    log.warn({ task: id, code, next }, `the result of a task was not taken: ${text}`)
    if (failure.kind === 'refused' && finalCodes.has(failure.code)) {
      record.changed('tasks', code, `The plane does not take the result of task ${id}: ${text}`)
      return settle(id, one)
    }
    later(id, one, failure.kind === 'refused' ? failure.retryAfterMs : null)
  }
  const post = async (id: string, one: Waiting): Promise<void> => {
    if (one.isSettled) return settle(id, one)
    const { result } = one
    const answer = await callPlane(agent, identityNow(), {
      endpoint: taskNodeApi.result,
      params: { task: id },
      json: resultBody(result),
    })
    if (answer.kind === 'stopped') return
    if (answer.kind !== 'answer') return failed(id, one, answer)
    log.info({ task: id, state: answer.value.state, code: result.code }, 'the plane has the result of a task')
    record.changed('tasks', answer.value.state, `Task ${id} (${one.type}): the plane has its result.`)
    record.count({ kind: 'task', event: stateOf(result) })
    return settle(id, one)
  }
  const postDue = async (): Promise<void> => {
    for (const [id, one] of [...waiting]) {
      if (!signal.aborted && clock.monotonicMs() >= one.notBeforeMs) await post(id, one)
    }
  }

  return {
    add: (id, type, result) => {
      if (waiting.has(id) || waiting.size >= mostWaiting) return
      waiting.set(id, { type, result, failures: 0, notBeforeMs: -Infinity, isSettled: false })
      wake.abort()
    },
    waiting: () => [...waiting].map(([id, { type }]) => ({ id, type })),
    keep: async () => {
      while (!signal.aborted) {
        wake = new AbortController()
        await postDue()
        const dueAtMs = Math.min(...[...waiting.values()].map((one) => one.notBeforeMs))
        const waitMs = Math.max(0, Math.min(dueAtMs - clock.monotonicMs(), retryCapMs))
        await pause(timers, waitMs, AbortSignal.any([signal, wake.signal]))
      }
    },
  }
}

const stateOf = ({ begun, code }: EndedTask): 'completed' | 'failed' | 'unknown' | 'refused' => {
  // It was begun by a helper that remembered it, or may have been: what became of it is not known here.
  if (code === 'SEEN_BEFORE') return 'unknown'
  if (!begun) return 'refused'
  if (code === null) return 'completed'
  return code === 'INTERRUPTED' ? 'unknown' : 'failed'
}

const resultBody = (result: EndedTask) => {
  const { begun: _, started_at_ms: startedAtMs, ...rest } = result
  return { ...rest, state: stateOf(result), started_at: startedAtMs === null ? null : isoTime(startedAtMs) }
}
