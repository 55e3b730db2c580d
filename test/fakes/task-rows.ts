// Tasks and who queues them, for tests: complete values, of which a test names only what it is about.

import type { Row } from '#domain/core/change.ts'
import type { NodePrincipal, Role } from '#domain/core/principal.ts'
import type { Rollout } from '#domain/tasks/rollout.ts'
import type { TaskSigners } from '#domain/tasks/signers.ts'
import { emptyLine, type Claimed, type Task, type TaskLine, type TaskResult } from '#domain/tasks/task.ts'
import type { OnRecord } from '#domain/tasks/task-policy.ts'
import { hour, minute, noonMs, row } from './sample-rows.ts'

export const someTaskId = `task_${'a'.repeat(26)}`

export const someTask = (changes: Partial<Task> = {}): Task => ({
  id: someTaskId,
  node: 'gpu-001',
  epoch: 4,
  type: 'service',
  parameters: { name: 'dcgm', action: 'restart' },
  queuedBy: { kind: 'operator', id: 'key-1', name: 'alice' },
  rollout: null,
  createdAtMs: noonMs - minute,
  expiresAtMs: noonMs + hour,
  correlation: 'story-of-the-task',
  state: { kind: 'queued' },
  ...changes,
})

export const someRollout = (changes: Partial<Rollout> = {}): Rollout => ({
  ...{ id: '01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', type: 'service', parameters: { name: 'dcgm', action: 'restart' } },
  ...{ lifeMs: hour, nodes: 5, concurrency: 2, failureLimit: 2 },
  ...{
    queuedBy: { kind: 'operator', id: 'key-1' },
    appliedBy: { kind: 'operator', id: 'key-1' },
    by: 'operator:alice',
  },
  createdAtMs: noonMs - minute,
  ...{ correlation: 'story-of-the-rollout', reached: 0, refused: 0, forgiven: 0, state: { kind: 'running' } },
  ...{ lastRefused: null, stalledBy: null },
  ...changes,
})

export const taskRow = (changes: Partial<Task> = {}): Row<Task> => row(someTask(changes), 2)

export const lineRow = (changes: Partial<TaskLine> = {}): Row<TaskLine> =>
  row({ ...emptyLine('gpu-001'), counter: 6, queued: 1, ...changes }, 9)

export const claimed = (changes: Partial<Claimed<'dispatched'>> = {}): Claimed<'dispatched'> => ({
  kind: 'dispatched',
  dispatchedAtMs: noonMs - 1000,
  epoch: 4,
  fingerprint: 'hash-of-a1',
  signer: 'signer-1',
  counter: 6,
  issuedAtMs: noonMs - 1000,
  ...changes,
})

/** One signer, that signs. */
export const signersRow = (changes: Partial<TaskSigners> = {}): Row<TaskSigners> => {
  const state = { kind: 'signing', sinceMs: noonMs - hour } as const
  const signers = [{ key: 'signer-1', spki: 'spki-1', version: 1, firstNumber: noonMs - hour, state }]
  return row({ number: noonMs - hour, signers, ...changes }, 6)
}

export const someResult = (changes: Partial<TaskResult> = {}): TaskResult => ({
  code: null,
  exitCode: 0,
  detail: null,
  output: { head: 'done\n', tail: '', bytes: 5 },
  startedAtMs: noonMs - 500,
  evidence: null,
  ...changes,
})

/** An operator key that is in force. */
export const keyOnRecord = (role: Role = 'operator'): OnRecord => ({
  reads: [{ row: 'operator-key', key: 'hash-of-key-1', version: 3 }],
  caller: { kind: 'operator', id: 'key-1', name: 'alice', role },
})

export const keyEnded: OnRecord = {
  reads: [{ row: 'operator-key', key: 'hash-of-key-1', version: 4 }],
  caller: 'the operator key that queued it was revoked: alice',
}

export const workerOnRecord = (id = 'east.pod-1'): OnRecord => ({
  reads: [{ row: 'worker', key: id, version: 3 }],
  caller: { kind: 'worker', id, name: id, types: ['service'], vclusters: ['blue'] },
})

/** With the current certificate of `nodeRow`. */
export const nodePrincipal = (changes: Partial<NodePrincipal> = {}): NodePrincipal => ({
  kind: 'node',
  id: 'gpu-001',
  epoch: 4,
  credential: { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' },
  notAfterMs: noonMs + 23 * hour,
  evidenceOnly: false,
  source: '192.0.2.1',
  ...changes,
})
