// One task, from the frame it came in to the moment the helper has taken it or refused it. What the envelope says is read here to fetch
// what the helper will need; whether it counts is for the helper alone.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import { pause } from '#agent/core/pause.ts'
import { parseStatement } from '#wire/core/statement.ts'
import type { TaskEnvelope } from '#wire/core/task-statements.ts'
import type { TaskFault } from '#wire/tasks/task-faults.ts'
import type { BeginOutcome, TaskHelper } from './helped-tasks.ts'
import type { TaskFiles } from './task-files.ts'
import type { TaskingAgent } from './task-link.ts'
import type { VerifierStatements } from './verifiers.ts'

/** `says`: unverified. */
export type ReceivedTask = { readonly text: string; readonly says: TaskEnvelope }

/** Null: it is no task, and there is no id to answer for. */
export const readTask = (text: string): ReceivedTask | null => {
  const says = parseStatement('task', text)?.value
  return says === undefined ? null : { text, says }
}

export type BeginParts = {
  readonly helper: Pick<TaskHelper, 'begin'>
  readonly statements: Pick<VerifierStatements, 'current' | 'fresh'>
  readonly files: Pick<TaskFiles, 'fetch'>
}

/** The host may lack nothing but a newer statement, such as one that names the signer of this task. */
const newerMayHelp: ReadonlySet<TaskFault> = new Set([
  'STATEMENT_MISSING',
  'STATEMENT_EXPIRED',
  'STATEMENT_OLDER',
  'STATEMENT_OF_ANOTHER',
  'FRESH_STATEMENT_NEEDED',
  'SIGNER_UNKNOWN',
])

const firstRetryMs = 200
const retryCapMs = 15_000

/** Tries until the helper has decided or the task has expired. Null: the agent was stopped. */
export const beginTask = async (
  agent: TaskingAgent,
  parts: BeginParts,
  task: ReceivedTask,
): Promise<Exclude<BeginOutcome, { kind: 'again' }> | null> => {
  const { clock, random, timers, log, signal } = agent
  for (let attempt = 0; !signal.aborted; attempt++) {
    const outcome = await beginOnce(parts, task)
    if (outcome.kind !== 'again') return outcome
    if (clock.nowMs() >= task.says.expires_ms) return { kind: 'refused', fault: 'TASK_EXPIRED', why: outcome.why }
    log.warn({ task: task.says.id, why: outcome.why }, 'a task could not be begun yet')
    const delayMs = firstRetryMs + fullJitterMs(attempt, firstRetryMs, retryCapMs, random.unit())
    await pause(timers, notBeforeMs(delayMs, outcome.afterMs ?? null, random.unit()), signal)
  }
  return null
}

const beginOnce = async (
  { helper, statements, files }: BeginParts,
  { text, says }: ReceivedTask,
): Promise<BeginOutcome> => {
  const file = await files.fetch(says)
  if (file.kind !== 'file') return file
  const statement = await statements.current()
  if (statement === null) return noStatement
  const outcome = await helper.begin(statement, text, file.path)
  if (outcome.kind !== 'refused' || !newerMayHelp.has(outcome.fault)) return outcome
  const fresh = await statements.fresh()
  return fresh === null ? noStatement : helper.begin(fresh, text, file.path)
}

const noStatement: BeginOutcome = { kind: 'again', why: 'no statement of verifiers can be had' }
