// Tasks for many nodes on the command line, against a real operator listener: a plan first, then a rollout.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slotOf } from '#domain/core/certificate.ts'
import { entry, readOf } from '#domain/core/change.ts'
import type { PlanView } from '#wire/plans/plan-api.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { putNode, someCertificate } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'

test('task create with a selector shows a plan and does nothing; with --yes it begins a rollout, which can be cancelled', async (t) => {
  const plane = await setUpCli(t)
  await plane.muster('vcluster', 'create', 'training')
  await plane.muster('vcluster', 'set', 'training', 'tasks.types=service')
  for (const id of ['gpu-001', 'gpu-002']) {
    const slots = {
      current: slotOf(someCertificate(`c-${id}`, { spki: `key-of-${id}` })),
      pending: null,
      retired: null,
    }
    await plane.store.commit({
      reads: [readOf('node', id, null)],
      writes: [
        putNode(id, { membership: { kind: 'active', sinceMs: startMs, slots }, epoch: 1, assignment: 'training' }),
      ],
      entries: [entry(operator, startMs, 'node.confirmed', { node: id, epoch: 1 })],
    })
  }
  const create = ['task', 'create', '--vcluster', 'training', '--type', 'service', '--param', 'name=dcgm']
  const bad = await plane.muster(...create)
  assert.match(bad.err, /TASK_PARAMETERS_INVALID/)
  const planned = await plane.muster(...create, '--param', 'action=restart')
  assert.equal(planned.code, exitCodes.onlyPlanned)
  assert.match(planned.out, /node gpu-002 .*gets the task/)
  assert.match(planned.out, /^type +service$/m)
  assert.match(planned.out, /^parameters +\{"name":"dcgm","action":"restart"\}$/m)
  assert.match(planned.out, /^expires +each 1h after it was queued$/m)
  assert.match(planned.out, /^pace +10 at once, and the rest is held after 1 failure$/m)
  assert.doesNotMatch(planned.out, /^task /m)
  const byNames = ['task', 'create', '--type', 'service', '--param', 'name=dcgm', '--param', 'action=restart']
  const input = '# rack 7\ngpu-002\n'
  const listed = await plane.musterWith({ input }, ...byNames, '--from', '-', '--state', 'active', '-o', 'json')
  assert.equal(listed.code, exitCodes.onlyPlanned, listed.err)
  assert.deepEqual(
    (JSON.parse(listed.out) as PlanView).effects.map(({ subject }) => subject).filter((one) => one !== 'task'),
    ['node gpu-002'],
  )
  for (const wrong of [['--tag', 'a b'], ['--connected', 'perhaps'], []])
    assert.equal((await plane.muster(...byNames, ...wrong)).code, exitCodes.usage)
  assert.match((await plane.muster(...byNames, '--condition', 'disk_full')).err, /NODES_NOT_FOUND/)
  const begun = await plane.muster(...create, '--param', 'action=restart', '--yes', '--concurrency', '1')
  assert.equal(begun.code, exitCodes.ok, begun.err)
  assert.match(begun.out, /reached +0 of 2 nodes, 1 at once/)
  const { rollouts } = JSON.parse((await plane.muster('rollout', 'list', '-o', 'json')).out) as {
    rollouts: { id: string; state: string }[]
  }
  assert.deepEqual(
    rollouts.map(({ state }) => state),
    ['running'],
  )
  const id = rollouts[0]?.id ?? ''
  assert.match((await plane.muster('rollout', 'cancel', id, '--reason', 'wrong unit')).out, /cancelled: wrong unit/)
  assert.equal((await plane.muster('rollout', 'wait', id)).code, exitCodes.taskFailed)
  const applied = await plane.muster('plan', 'apply', /^plan +(\S+)$/m.exec(planned.out)?.[1] ?? '')
  assert.match(applied.out, /^rollout \S+ +begun$/m)
  assert.match(applied.err, /muster rollout wait \S+$/m)
  assert.equal((await plane.muster('rollout', 'show', '01JCQ7Z6W3M8X9Y0Z1A2B3C4D5')).code, exitCodes.notFound)
})
