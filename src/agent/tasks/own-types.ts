// The types that the agent itself carries out, once the helper has verified and remembered the task.

import { statusIn } from '#agent/diagnostics/record-files.ts'
import { explain } from '#agent/diagnostics/status.ts'
import { explanationLines, explanationOf, factsOf } from '#agent/diagnostics/explain.ts'
import type { RecoveryRotation } from '#agent/state/recovery-rotation.ts'
import { isoTime } from '#platform/clock.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { musterVersion } from '#platform/this-process.ts'
import type { TaskEnvelope } from '#wire/core/task-statements.ts'
import { ended, type HostResult } from './helped-tasks.ts'
import type { TaskingAgent } from './task-link.ts'

export const isOwnType = (type: string): boolean => type === 'rotate-recovery' || type === 'collect-diagnostics'

/** Never rejects for what the task does. */
export const carryOut = async (
  agent: TaskingAgent,
  rotation: RecoveryRotation,
  { type }: Pick<TaskEnvelope, 'type'>,
): Promise<HostResult> => {
  const startedAtMs = agent.clock.nowMs()
  switch (type) {
    case 'collect-diagnostics':
      return { ...collectDiagnostics(agent), started_at_ms: startedAtMs }
    case 'rotate-recovery':
      return { ...(await rotateRecovery(agent, rotation)), started_at_ms: startedAtMs }
    default:
      return ended('TYPE_NOT_ALLOWED', `This agent does not carry out ${type}`)
  }
}

/** What `muster agent status` and `muster agent explain` say on the machine. Nothing of it is a secret, and it is looked at for some all the same. */
const collectDiagnostics = ({ record, clock, keeper, config, storage }: TaskingAgent): HostResult => {
  const nowMs = clock.nowMs()
  const now = record.now()
  const status = statusIn(now, isoTime(nowMs))
  const { identity } = keeper.credentials()
  const free = storage.freeBytes()
  const explanation = explanationOf({
    ...{ stateFolder: config.stateFolder, status, running: true, nowMs, events: now.events },
    ...{ identity: identity === null ? null : factsOf(identity), freeBytes: free.identity },
  })
  const lines = [...explain(status, true, nowMs).sentences, ...explanationLines(explanation)]
  return ended(null, null, {
    output: boundedOutput(redactSecrets(lines.join('\n'))),
    evidence: {
      version: musterVersion,
      phase: status.phase,
      code: explanation.code,
      troubles: status.troubles.map(({ place, code }) => `${place}: ${code}`.slice(0, 128)),
      free_bytes: { ...free },
    },
  })
}

const rotateRecovery = async ({ config, keeper }: TaskingAgent, rotation: RecoveryRotation): Promise<HostResult> => {
  const held = keeper.credentials().identity?.recovery?.credential.kind ?? 'none'
  if (config.recovery !== 'key' || held === 'bearer')
    return ended('NOT_DONE', 'This node has no recovery key: a recovery token is replaced by every renewal')
  const outcome = await rotation.ask()
  return outcome.kind === 'rotated'
    ? ended(null, `The renewal to certificate ${outcome.serial} registered a new recovery key`)
    : ended('NOT_DONE', outcome.why)
}

const keptBytes = 8_192

/** Its beginning and its end, as of every task. */
export const boundedOutput = (text: string): NonNullable<HostResult['output']> => {
  const bytes = Buffer.from(text)
  const head = bytes.subarray(0, keptBytes)
  const tail = bytes.subarray(Math.max(head.length, bytes.length - keptBytes))
  return { head: head.toString('utf8'), tail: tail.toString('utf8'), bytes: bytes.length }
}
