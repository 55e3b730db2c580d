// A plane with five nodes on which rollouts are planned, begun and gone on with.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import type { Json } from '../process/operator-call.ts'
import { completed, principalOf, setUpTasks } from './tasks-setup.ts'

export const rolloutNodes = ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004', 'gpu-005']
export const failed = { ...completed, state: 'failed', code: 'FAILED', exit_code: 3 } as const
export const parameters = { name: 'dcgm', action: 'restart' }

export const setUpRollouts = async (t: TestContext) => {
  const plane = await setUpTasks(t, ...rolloutNodes)
  const { store, core } = plane
  const plan = (more: object = {}): Promise<Json> =>
    plane.ask('POST', '/v1/plans', {
      action: { kind: 'create-tasks', select: { vcluster: 'training' }, type: 'service', parameters, ...more },
    })
  const begin = async (more: object = {}): Promise<string> => {
    const { id } = await plan(more)
    const { steps } = await plane.ask('POST', `/v1/plans/${id}/apply`, {})
    assert.deepEqual([steps.length, steps[0].subject, steps[0].done], [1, `rollout ${id}`, true])
    return id
  }
  return {
    ...plane,
    plan,
    begin,
    /** What a leader does in a second; each is one that has just begun to lead. */
    goOn: async () => openRolloutUpkeep(core).run(store),
    rollout: (id: string): Promise<Json> => plane.ask('GET', `/v1/rollouts/${id}`),
    tasks: async (id: string): Promise<Json[]> => (await plane.ask('GET', `/v1/tasks?rollout=${id}`)).tasks,
    carryOut: async (node: string, result: typeof completed | typeof failed = completed) => {
      const task = await plane.dispatch(node)
      assert.ok(task !== null, `${node} has no task`)
      await plane.answer(task.id, principalOf(node), result)
    },
  }
}
