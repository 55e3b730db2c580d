// Whether a task is one that this node has to carry out now: signed by a task signer that counts, for this node in this epoch, within
// its time, and not seen before. Facts in, verdict out; pure.

import { verifySignature } from '#pki/keys.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { taskStatementLifeMs, type TaskEnvelope } from '#wire/core/task-statements.ts'
import {
  believedTime,
  clockInDoubt,
  statementExpired,
  toleranceMs,
  type StatementMemory,
  type ThisNode,
  type TimeFacts,
} from './judge-statement.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export type TaskFacts = TimeFacts & {
  readonly text: string
  readonly node: ThisNode
  readonly memory: StatementMemory | null
  /** Whether it was begun before. */
  readonly isSeen: (id: string) => boolean
  /** The latest expiry of a task whose id is not remembered any more: what expires no later may be that one. */
  readonly forgottenUntilMs: number
}

export type JudgedTask =
  | { readonly kind: 'verified'; readonly task: TaskEnvelope }
  /** Nothing is done, so nothing of it has to be verified. */
  | { readonly kind: 'seen'; readonly id: string }

export const judgeTask = (facts: TaskFacts): JudgedTask | TaskRefusal => {
  const { text, node, memory } = facts
  const parsed = parseStatement('task', text)
  if (parsed === null) return refuseTask('NOT_SIGNED', 'That is not a task')
  const { value: task, signed, signature } = parsed
  // Before its time is judged: a task that has ended is asked for again after its expiry.
  if (facts.isSeen(task.id)) return { kind: 'seen', id: task.id }
  if (memory === null || memory.statement === null)
    return refuseTask('STATEMENT_MISSING', 'This helper has no statement of verifiers')
  const { verifiers, withdrawn, expiresMs } = memory.statement
  if (withdrawn.includes(task.key)) return refuseTask('SIGNER_WITHDRAWN', `Task signer ${task.key} is withdrawn`)
  const signer = verifiers.find(({ key }) => key === task.key)
  if (signer === undefined) return refuseTask('SIGNER_UNKNOWN', `Task signer ${task.key} is not one of this domain's`)
  if (!verifySignature(Buffer.from(signer.spki, 'base64'), signed, signature))
    return refuseTask('NOT_SIGNED', `The signature is not one of task signer ${task.key}`)
  if (task.domain !== node.domain) return refuseTask('WRONG_DOMAIN', `The task is for domain ${task.domain}`)
  if (task.node !== node.id) return refuseTask('WRONG_NODE', `The task is for node ${task.node}`)
  if (task.epoch !== memory.epoch)
    return refuseTask('WRONG_EPOCH', `The task is for epoch ${task.epoch}; this node has epoch ${memory.epoch}`)
  if (task.expires_ms - task.issued_ms > taskStatementLifeMs)
    return refuseTask('LIVES_TOO_LONG', 'The task lives for more than 24 hours')
  const nowMs = believedTime(facts, memory)
  const isProven = facts.provenMs !== null
  if (nowMs === null) return clockInDoubt
  if (expiresMs <= nowMs) return isProven ? statementExpired : clockInDoubt
  if (task.issued_ms > nowMs + toleranceMs || task.expires_ms <= nowMs)
    return isProven ? refuseTask('TASK_EXPIRED', 'The task has expired, or was issued in the future') : clockInDoubt
  if (task.expires_ms <= facts.forgottenUntilMs)
    return refuseTask('SEEN_BEFORE', 'Tasks that expire as early as this one are not remembered any more')
  // Signed in this epoch before this helper remembered anything: it may have been begun, as the one that restarted this machine was.
  if (task.issued_ms < memory.rememberedSinceMs)
    return refuseTask('SEEN_BEFORE', 'This helper does not remember what was begun when the task was issued')
  return { kind: 'verified', task }
}

/** Of a task that may be repeated: one that ends its helper each time is not begun for ever. */
const mostAttempts = 3

/**
 * Whether a task that was interrupted may be begun again: in its time, under a statement that has not expired, and while its signer is
 * not withdrawn. A clock in doubt begins none: the task may have expired long ago, and nothing is there yet to prove the time.
 */
export const mayBeginAgain = (
  { attempts, key, expires_ms }: { readonly attempts: number; readonly key: string; readonly expires_ms: number },
  memory: StatementMemory | null,
  time: TimeFacts,
): boolean => {
  const nowMs = believedTime(time, memory)
  if (attempts >= mostAttempts || nowMs === null || memory === null || memory.statement === null) return false
  // Within the tolerance the clock of the host may be behind what is known.
  const latestMs = Math.max(nowMs, time.floorMs, memory.issuedMs)
  const { expiresMs, withdrawn } = memory.statement
  return expires_ms > latestMs && expiresMs > latestMs && !withdrawn.includes(key)
}
