// One task, from the frame it came in to the moment the helper has taken it or refused it. What the envelope says is read here to fetch
// what the helper will need; whether it counts is for the helper alone.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import { pause } from '#agent/core/pause.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { taskStatementLifeMs, type TaskEnvelope } from '#wire/core/task-statements.ts'
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

export type Begun =
  | Exclude<BeginOutcome, { kind: 'again' }>
  /** Nothing is said of it: the plane knows best when it is over, and sends it again until then. */
  | { readonly kind: 'left'; readonly why: string }

/**
 * Tries until the helper has decided. Once it may have begun, only its own verdict counts: a task that runs must not be reported as
 * refused. No clock of the host decides that a task is over. Null: the agent was stopped.
 */
export const beginTask = async (agent: TaskingAgent, parts: BeginParts, task: ReceivedTask): Promise<Begun | null> => {
  const { clock, random, timers, log, signal } = agent
  const lifeMs = Math.min(taskStatementLifeMs, Math.max(0, task.says.expires_ms - task.says.issued_ms))
  const leaveAtMs = clock.monotonicMs() + lifeMs
  let file: FetchedFile | null = null
  let isUnsure = false
  for (let attempt = 0; !signal.aborted; attempt++) {
    const fetched: Awaited<ReturnType<TaskFiles['fetch']>> = file ?? (await parts.files.fetch(task.says))
    if (fetched.kind === 'file') file = fetched
    const outcome = fetched.kind === 'file' ? await beginOnce(parts, task, fetched) : fetched
    if (outcome.kind === 'refused' && isUnsure && outcome.isUnjudged === true) return { kind: 'left', why: outcome.why }
    if (outcome.kind !== 'again') return outcome
    isUnsure ||= outcome.isUnsure === true
    if (clock.monotonicMs() >= leaveAtMs) return { kind: 'left', why: outcome.why }
    log.warn({ task: task.says.id, why: outcome.why }, 'a task could not be begun yet')
    const delayMs = firstRetryMs + fullJitterMs(attempt, firstRetryMs, retryCapMs, random.unit())
    await pause(timers, notBeforeMs(delayMs, outcome.afterMs ?? null, random.unit()), signal)
  }
  return null
}

type FetchedFile = Extract<Awaited<ReturnType<TaskFiles['fetch']>>, { kind: 'file' }>

const beginOnce = async (
  { helper, statements }: BeginParts,
  { text }: ReceivedTask,
  file: FetchedFile,
): Promise<BeginOutcome> => {
  const statement = await statements.current()
  if (statement === null) return noStatement
  const outcome = await helper.begin(statement, text, file.path)
  if (outcome.kind !== 'refused' || !newerMayHelp.has(outcome.fault)) return outcome
  const fresh = await statements.fresh()
  return fresh === null ? noStatement : helper.begin(fresh, text, file.path)
}

const noStatement: BeginOutcome = { kind: 'again', why: 'no statement of verifiers can be had' }
