import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import { alice, hour, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import { provisioningStates, type Provisioning } from '#domain/core/node.ts'
import { decideProvisioning, type ProvisioningReport } from './provisioning.ts'
import { schedulingOf } from './scheduling.ts'

const before: Provisioning = { state: 'deploying', detail: null, sinceMs: noonMs - hour, by: 'operator:maas' }
const report = (said: ProvisioningReport | null, provisioning: Provisioning | null = before) =>
  decideProvisioning({ node: nodeRow('active', { provisioning }), report: said, by: alice, nowMs: noonMs })

test('what an adapter says is kept and journaled; a repeat is not written', () => {
  const { node, change } = expectDecided(report({ state: 'deployed', detail: null }))
  assert.deepEqual(node.provisioning, { state: 'deployed', detail: null, sinceMs: noonMs, by: alice.actor })
  assert.equal(change.entries[0]?.type, 'node.provisioning_reported')
  assert.deepEqual(change.entries[0]?.body, { state: 'deployed', was: 'deploying', detail: null })
  assert.deepEqual(report({ state: 'deploying', detail: null }), { kind: 'unchanged' })
  assert.deepEqual(report(null, null), { kind: 'unchanged' })
})

test('another detail of the same state does not make it look new, and an adapter can leave', () => {
  const more = expectDecided(report({ state: 'deploying', detail: 'disk 3 of 8' }))
  assert.equal(more.node.provisioning?.sinceMs, before.sinceMs)
  assert.equal(expectDecided(report(null)).node.provisioning, null)
})

test('nothing is said of a revoked node', () => {
  const node = nodeRow('revoked')
  const said = { state: 'ready', detail: null } as const
  expectRefused(decideProvisioning({ node, report: said, by: alice, nowMs: noonMs }), 'NODE_REVOKED')
})

test('work is placed on a machine that is deployed, or that no adapter looks after', () => {
  for (const state of [null, ...provisioningStates]) {
    const provisioning = state === null ? null : { ...before, state }
    const { value } = nodeRow('active', { assignment: 'blue', provisioning })
    const { state: is, reasons } = schedulingOf(value)
    const free = state === null || state === 'deployed'
    assert.deepEqual([is, reasons], free ? ['schedulable', []] : ['unavailable', [`provisioning: ${state}`]])
  }
})
