import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roles, type Role } from '#domain/core/principal.ts'
import { mayQueue, outOfReach, type PolicyFacts, type TaskCaller } from './task-policy.ts'

const operator = (role: Role): TaskCaller => ({ kind: 'operator', id: 'key-1', name: 'alice', role })
const worker = (types: readonly string[], vclusters: readonly string[]): TaskCaller => ({
  ...{ kind: 'worker', id: 'east.1', name: 'provisioning' },
  ...{ types, vclusters },
})
const blue = { name: 'blue', tasks: { types: ['service', 'run', 'reboot', 'x-led'] }, deletedAtMs: null }

const asked = (changes: Partial<PolicyFacts> = {}): string | null => {
  const no = mayQueue({
    ...{ caller: operator('operator'), node: { id: 'gpu-001', assignment: 'blue' }, vcluster: blue },
    ...{ domain: { tasks: { run: true, reboot: true, approveRunAbove: null } }, type: 'service', ...changes },
  })
  return no === null ? null : `${no.code} ${no.detail ?? ''}`
}

test('a vCluster lists the types that are allowed on it, and by default none is', () => {
  assert.equal(asked(), null)
  assert.equal(asked({ type: 'x-led' }), null)
  assert.match(
    asked({ type: 'cleanup' }) ?? '',
    /^TASK_TYPE_NOT_ALLOWED .*tasks\.types=service,run,reboot,x-led,cleanup/,
  )
  const none = { ...blue, tasks: { types: [] } }
  assert.match(asked({ vcluster: none }) ?? '', /vCluster blue allows no types: .*tasks\.types=service$/)
})

test('run and reboot are off until the domain switches them on, also for platform-admins', () => {
  const off = { tasks: { run: false, reboot: false, approveRunAbove: null } }
  const alone = { node: { id: 'gpu-001', assignment: null }, vcluster: null, caller: operator('platform-admin') }
  for (const type of ['run', 'reboot'] as const) {
    assert.match(asked({ type, domain: off }) ?? '', new RegExp(`domain set tasks.${type}=true`))
    assert.match(asked({ type, domain: off, ...alone }) ?? '', /^TASK_TYPE_NOT_ALLOWED/)
    assert.equal(asked({ type }), null)
  }
  assert.equal(asked({ domain: off }), null)
})

test('a node in no vCluster takes what platform-admins queue, and nothing else', () => {
  const unassigned = { node: { id: 'gpu-001', assignment: null }, vcluster: null }
  const may = roles.filter((role) => asked({ ...unassigned, caller: operator(role) }) === null)
  assert.deepEqual(may, ['platform-admin'])
})

test('viewers queue nothing, and nothing is queued in a vCluster that is deleted', () => {
  assert.match(asked({ caller: operator('viewer') }) ?? '', /^ROLE_FORBIDDEN/)
  assert.match(asked({ vcluster: { ...blue, deletedAtMs: 5 } }) ?? '', /^VCLUSTER_NOT_FOUND/)
  assert.match(asked({ vcluster: null }) ?? '', /^VCLUSTER_NOT_FOUND/)
})

test('a worker queues the types and in the vClusters of its issuer, where the vCluster allows them too', () => {
  assert.equal(asked({ caller: worker(['service'], ['blue']) }), null)
  assert.match(
    asked({ caller: worker(['run'], ['blue']) }) ?? '',
    /may not queue service: muster worker-issuer set east --types run,service/,
  )
  assert.match(asked({ caller: worker(['cleanup'], ['blue']), type: 'cleanup' }) ?? '', /vCluster blue allows/)
})

test('a worker hears the same about every node outside of its vClusters, whatever is allowed there', () => {
  const caller = worker(['service'], ['red'])
  const none = { ...blue, tasks: { types: [] } }
  const off = { tasks: { run: false, reboot: false, approveRunAbove: null } }
  const answers = [
    asked({ caller }),
    asked({ caller, type: 'cleanup' }),
    asked({ caller, type: 'run', domain: off }),
    asked({ caller, vcluster: none }),
    asked({ caller, vcluster: { ...blue, deletedAtMs: 5 } }),
    asked({ caller, vcluster: null }),
    asked({ caller, vcluster: null, node: { id: 'gpu-001', assignment: null } }),
  ]
  const refusal = outOfReach('gpu-001')
  assert.deepEqual([...new Set(answers)], [`${refusal.code} ${refusal.detail ?? ''}`])
})
