// Plan before harm, by the commands people use: shown first, done as shown, refused with what changed.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Change } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { everyNodeSelected } from '#domain/fleet/node-selector.ts'
import { applyPlan, type PlanParts } from '#plane/plans/apply-plan.ts'
import { assignNode } from '#plane/fleet/assign-node.ts'
import { changeProfile } from '#plane/settings/policy-routes.ts'
import { createVCluster } from '#plane/fleet/change-vclusters.ts'
import { computePlan, type PlanCore } from '#plane/plans/compute-plan.ts'
import { planDocument } from '#plane/plans/declare-document.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { documentVersion } from '#wire/plans/document-api.ts'
import type { PlanApplied, PlanView } from '#wire/plans/plan-api.ts'
import { operator } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const setUp = async (t: TestContext) => {
  const plane = await setUpCli(t)
  const ok = async (...words: string[]): Promise<string> => {
    const said = await plane.muster(...words)
    assert.equal(said.code, exitCodes.ok, `${words.join(' ')}: ${said.err}`)
    return said.out
  }
  const plan = async (...words: string[]): Promise<PlanView> => JSON.parse(await ok(...words, '-o', 'json')) as PlanView
  const apply = async (id: string): Promise<PlanApplied> =>
    JSON.parse(await ok('plan', 'apply', id, '-o', 'json')) as PlanApplied
  return { ...plane, ok, plan, apply }
}

test('several nodes are revoked only as planned, each with its receipt, and the plan works once', async (t) => {
  const { ok, apply, muster, call } = await setUp(t)
  for (const id of ['gpu-001', 'gpu-002']) await ok('node', 'enroll', id)
  // Without --plan, too: several at once are shown first.
  const order = ['node', 'revoke', 'gpu-001', 'gpu-002', '--reason', 'stolen', '--reason-code', 'key-compromise']
  const said = await muster(...order, '-o', 'json')
  assert.equal(said.code, exitCodes.onlyPlanned, 'nothing was done, and a script notices')
  const shown = JSON.parse(said.out) as PlanView
  assert.deepEqual(
    shown.effects.map(({ subject, loses }) => [subject, loses]),
    [
      ['node gpu-001', 'at once'],
      ['node gpu-002', 'at once'],
    ],
  )
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.membership, 'registered')

  const { steps } = await apply(shown.id)
  assert.ok(steps.every(({ done, receipt }) => done && receipt !== null && receipt.effective_at !== null))
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-002')).body.membership, 'revoked')
  const { entries } = (await call('viewer', 'GET', '/v1/journal?node=gpu-002&type=host.revoked')).body
  assert.equal(entries[0].entry.body.reason_code, 'key-compromise')
  const again = await muster('plan', 'apply', shown.id)
  assert.equal(again.code, exitCodes.refused)
  assert.match(again.err, /PLAN_USED/)
})

test('how far a plan is can be asked while it is applied, and says nothing before and after', async (t) => {
  const { ok, plan, apply, call } = await setUp(t)
  await ok('node', 'enroll', 'gpu-001')
  const { id } = await plan('node', 'drain', 'gpu-001', '--plan')
  const idle = { done: null, of: null }
  const progress = async () => (await call('viewer', 'GET', `/v1/plans/${id}/progress`)).body
  assert.deepEqual(await progress(), idle)
  await apply(id)
  assert.deepEqual(await progress(), idle)
  assert.equal((await call('viewer', 'GET', '/v1/plans/none/progress')).body.code, 'PLAN_NOT_FOUND')
})

test('a plan computed before a change and applied after it is refused with what changed, and does nothing', async (t) => {
  const { ok, plan, muster, call } = await setUp(t)
  for (const id of ['gpu-001', 'gpu-002']) await ok('node', 'enroll', id)
  const { id } = await plan('node', 'revoke', 'gpu-001', 'gpu-002', '--reason', 'stolen', '--plan')
  await ok('node', 'quarantine', 'gpu-002', '--reason', 'odd traffic')
  const refused = await muster('node', 'revoke', '--apply', id)
  assert.equal(refused.code, exitCodes.refused)
  assert.match(refused.err, /PLAN_STALE/)
  assert.match(refused.err, /node gpu-002 was registered, and is quarantined/)
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.membership, 'registered')
})

test('a plan is applied to the nodes it was computed for: other nodes, or another reason, are refused', async (t) => {
  const { ok, plan, muster, call } = await setUp(t)
  for (const id of ['gpu-001', 'gpu-002']) await ok('node', 'enroll', id)
  const { id } = await plan('node', 'revoke', 'gpu-001', '--reason', 'stolen', '--plan')
  for (const more of [['gpu-002'], ['--reason', 'lost'], ['--reason-code', 'superseded']]) {
    const refused = await muster('node', 'revoke', ...more, '--apply', id)
    assert.equal(refused.code, exitCodes.usage)
    assert.match(refused.err, /muster plan show/)
  }
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.membership, 'registered')
  await ok('node', 'revoke', '--apply', id)
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.membership, 'revoked')
})

test('deleting a vCluster shows which nodes go into maintenance mode, and a node assigned since makes it stale', async (t) => {
  const { ok, plan, apply, muster, call } = await setUp(t)
  await ok('vcluster', 'create', 'blue')
  for (const id of ['gpu-001', 'gpu-002']) await ok('node', 'enroll', id)
  await ok('node', 'assign', 'gpu-001', '--to', 'blue')
  const first = await plan('vcluster', 'delete', 'blue', '--plan')
  assert.deepEqual(
    first.effects.map(({ subject }) => subject),
    ['vcluster blue', 'node gpu-001'],
  )
  await ok('node', 'assign', 'gpu-002', '--to', 'blue')
  const stale = await muster('vcluster', 'delete', '--apply', first.id)
  assert.match(stale.err, /node gpu-002 is new: in blue/)
  const second = await plan('vcluster', 'delete', 'blue', '--plan')
  assert.ok((await apply(second.id)).steps.every(({ done }) => done))
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.vcluster, null)
  assert.equal((await muster('vcluster', 'show', 'blue')).code, exitCodes.notFound)
})

test('a token that is the only way in says so; a profile shows its changes; a rotation what stays good', async (t) => {
  const { ok, plan, apply } = await setUp(t)
  const made = JSON.parse(await ok('token', 'create', '--node', 'gpu-001', '-o', 'json')) as { token: { id: string } }
  const token = await plan('token', 'revoke', made.token.id, '--plan')
  assert.match(token.effects[1]?.unrecoverable ?? '', /no other way in: muster token create --node gpu-001/)
  await apply(token.id)

  const profile = await plan('profile', 'set', 'gpu-cloud', 'certificate.lifetimeMs=12h', '--plan')
  assert.match(profile.effects[0]?.effect ?? '', /certificate\.lifetimeMs: 86400000 -> 43200000/)
  await apply(profile.id)
  assert.match(await ok('profile', 'show', 'gpu-cloud'), /lifetimeMs +12h/)

  const rotation = await plan('ca', 'rotate', '--plan')
  assert.match(rotation.effects[0]?.effect ?? '', /stays good until it ends/)
  await apply(rotation.id)
})

test('who may not do it may neither plan it nor apply it', async (t) => {
  const { ok, plan, musterWith, keyFile } = await setUp(t)
  await ok('vcluster', 'create', 'blue')
  const as = (role: 'viewer' | 'operator') => ({ env: { MUSTER_KEY_FILE: keyFile(role) } })
  const { id } = await plan('vcluster', 'delete', 'blue', '--plan')
  for (const words of [
    ['plan', 'apply', id],
    ['vcluster', 'delete', 'blue', '--plan'],
  ]) {
    assert.equal((await musterWith(as('operator'), ...words)).code, exitCodes.notAllowed)
  }
  assert.equal((await musterWith(as('viewer'), 'plan', 'show', id)).code, exitCodes.ok)
})

/** `meanwhile` runs when the plan is marked as applied, and nothing of it is done yet. */
const interrupted = async (t: TestContext) => {
  const plane = await setUpOperatorServer(t)
  const { store } = plane
  const applying = (meanwhile: () => Promise<unknown>): PlanCore => ({
    ...plane,
    store: {
      ...store,
      async commit(change: Change) {
        const outcome = await store.commit(change)
        if (change.writes.some(({ put }) => put === 'plan')) await meanwhile()
        return outcome
      },
    },
  })
  const planOf = async (action: Parameters<typeof computePlan>[2]): Promise<string> => {
    const done = await computePlan(plane, plane as unknown as PlanParts, action, operator)
    assert.ok(!isRefusal(done))
    return done.plan.id
  }
  const codes = async (id: string, meanwhile: () => Promise<unknown>): Promise<readonly string[]> => {
    const done = await applyPlan(applying(meanwhile), plane as unknown as PlanParts, id, { by: operator, key: 'a-key' })
    assert.ok(!isRefusal(done))
    return done.steps.map(({ outcome }) => (isRefusal(outcome) ? outcome.code : outcome.kind))
  }
  return { plane, planOf, codes }
}

test('a node that comes into a vCluster while its deletion is applied is not taken out of it', async (t) => {
  const { plane, planOf, codes } = await interrupted(t)
  await createVCluster(plane, 'blue', { set: {}, overlay: null }, operator)
  for (const id of ['a', 'b']) await registerNode(plane, { id, profile: null, macs: [], bmcSerial: null }, operator)
  await assignNode(plane, 'a', 'blue', operator)
  const id = await planOf({ kind: 'delete-vcluster', vcluster: 'blue' })
  assert.deepEqual(await codes(id, () => assignNode(plane, 'b', 'blue', operator)), ['PLAN_STALE'])
  for (const node of ['a', 'b']) assert.equal((await plane.store.get('node', node))?.value.assignment, 'blue')
  assert.equal((await plane.store.get('vcluster', 'blue'))?.value.closed, false)
})

test('a profile that is changed while another change of it is applied stays as it is then', async (t) => {
  const { plane, planOf, codes } = await interrupted(t)
  const change = (limit: number) =>
    changeProfile(plane, plane.authority, 'gpu-cloud', { 'recovery.limit': limit }, operator)
  const id = await planOf({ kind: 'change-profile', profile: 'gpu-cloud', set: { 'recovery.limit': 2 } })
  assert.deepEqual(await codes(id, () => change(5)), ['PLAN_STALE'])
  assert.equal((await plane.store.get('profile', 'gpu-cloud'))?.value.recovery.limit, 5)
})

test('beside replicas of the release before no plan is made that they do not know', async (t) => {
  const plane = await setUpOperatorServer(t)
  const unfinished = { schema: 3, newest: 4, waitsFor: ['old (0.4.0)'], failure: null }
  const core = { ...plane, store: { ...plane.store, unfinishedUpgrade: () => unfinished } }
  await registerNode(plane, { id: 'a', profile: null, macs: [], bmcSerial: null }, operator)
  const select = everyNodeSelected
  const planned = (action: Parameters<typeof computePlan>[2]) =>
    computePlan(core, plane as unknown as PlanParts, action, operator)
  const drained = await planned({ kind: 'change-nodes', select, change: { verb: 'drain' } })
  assert.equal(isRefusal(drained) && drained.code, 'UPGRADE_UNFINISHED')
  const action = { document: { apiVersion: documentVersion }, prune: false } as const
  const declared = await planDocument(core, plane.authority, action, operator)
  assert.equal(isRefusal(declared) && declared.code, 'UPGRADE_UNFINISHED')
  const changed = await planned({ kind: 'change-profile', profile: 'gpu-cloud', set: { 'recovery.limit': 2 } })
  assert.ok(!isRefusal(changed), 'a plan that they know')
})
