// A node says how a task ended. Answered when it is durable, so that an agent that got the answer may forget it.

import { boundedText } from '#domain/core/change.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { decideResult, type ReportedEnd } from '#domain/tasks/end-task.ts'
import type { Task, TaskId, TaskResult } from '#domain/tasks/task.ts'
import { commitDecision, nodeTries } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { longestDetail, longestEvidence, type TaskResultRequest } from '#wire/tasks/task-node-api.ts'

export type GivenResult = {
  readonly principal: NodePrincipal
  readonly task: TaskId
  readonly body: TaskResultRequest
  readonly correlation: string
}

export const takeResult = async (
  core: FlowCore,
  { principal, task: id, body, correlation }: GivenResult,
): Promise<{ readonly kind: 'taken'; readonly task: Task } | Refusal> => {
  const evidence = body.evidence === null ? '' : JSON.stringify(body.evidence)
  if (Buffer.byteLength(evidence) > longestEvidence)
    return refuseField('REQUEST_INVALID', 'evidence', `as JSON it has at most ${longestEvidence} bytes`)
  const { store, clock } = core
  const reported: ReportedEnd = { state: body.state, result: resultOf(body) }
  const by = { actor: actorOf(principal), source: principal.source, correlation }
  const decide = async () => {
    // Each time: what ends the identity may have been committed since.
    const standing = await useCertificate(core, principal, correlation)
    if (standing.kind === 'refused') return standing
    const task = await store.get('task', id)
    if (task === null) return refuse('TASK_NOT_FOUND', id)
    const line = await store.get('task-line', task.value.node)
    return decideResult({ task, line, node: standing.node, principal, reported, by, nowMs: clock.nowMs() })
  }
  const done = await commitDecision(core, decide, nodeTries)
  if (done.kind === 'refused') return { ...done, about: { node: principal.id, actor: by.actor } }
  return { kind: 'taken', task: done.task }
}

/** What a program printed, and what a host collected, may hold secrets of the plane, which operators must not find in a task. */
const resultOf = ({ code, exit_code: exitCode, detail, output, started_at: startedAt, evidence }: TaskResultRequest) =>
  ({
    code,
    exitCode,
    detail: detail === null ? null : boundedText(detail, longestDetail),
    output:
      output === null
        ? null
        : { head: redactSecrets(output.head), tail: redactSecrets(output.tail), bytes: output.bytes },
    startedAtMs: startedAt === null ? null : parseIsoTime(startedAt),
    // As text, so that a name of a field is looked at as well.
    evidence: evidence === null ? null : (JSON.parse(redactSecrets(JSON.stringify(evidence))) as typeof evidence),
  }) satisfies TaskResult
