// What an agent says of its overlay once is not lost, however busy its node was just then.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuse } from '#domain/core/refusal.ts'
import { assignNode } from '#plane/fleet/assign-node.ts'
import { createVCluster } from '#plane/fleet/change-vclusters.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { openOverlayIntake } from '#plane/fleet/take-overlay-state.ts'
import { testPrincipal } from '../fakes/test-session.ts'
import { operator } from './authority-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const state = { config_revision: 1, applied: true, detail: null, services: [], drift: [] }

test('a state that came while the node wrote too much is decided with its next report; a repeated one writes nothing', async (t) => {
  const plane = await setUpOperatorServer(t)
  await registerNode(plane, { id: 'a', profile: null, macs: [], bmcSerial: null }, operator)
  await createVCluster(plane, 'training', { set: {}, overlay: null }, operator)
  await assignNode(plane, 'a', 'training', operator)
  let hurried = true
  const writeLimit = { take: () => (hurried ? refuse('RATE_LIMITED') : null) }
  const [intake, principal] = [openOverlayIntake(plane, writeLimit), testPrincipal('a')]
  const conditions = async () => (await plane.store.get('node', 'a'))?.value.conditions.map(({ name }) => name)
  const drifted = { ...state, drift: ['service worker: not running'] }

  await intake.take(principal, drifted, 'session-1')
  assert.deepEqual(await conditions(), [])
  assert.deepEqual((await plane.store.observation('a')).overlay, drifted)
  hurried = false
  await intake.again(principal, 'session-1')
  assert.deepEqual(await conditions(), ['config_drift'])
  const version = (await plane.store.get('node', 'a'))?.version
  await intake.take(principal, drifted, 'session-1')
  await intake.again(principal, 'session-1')
  assert.equal((await plane.store.get('node', 'a'))?.version, version)

  hurried = true
  await intake.take(principal, state, 'session-1')
  intake.forget('a')
  hurried = false
  await intake.again(principal, 'session-2')
  assert.deepEqual(await conditions(), ['config_drift'])
  await intake.take(principal, state, 'session-2')
  assert.deepEqual(await conditions(), [])
})

test('a service that failed is a condition with its error, also where an agent of 0.3 calls it drift; so is a check', async (t) => {
  const plane = await setUpOperatorServer(t)
  await registerNode(plane, { id: 'a', profile: null, macs: [], bmcSerial: null }, operator)
  await createVCluster(plane, 'training', { set: {}, overlay: null }, operator)
  await assignNode(plane, 'a', 'training', operator)
  const [intake, principal] = [openOverlayIntake(plane, { take: () => null }), testPrincipal('a')]
  const conditions = async () =>
    (await plane.store.get('node', 'a'))?.value.conditions.map(({ name, evidence }) => [name, evidence])
  const failed = { name: 'worker', state: 'failed' as const, restarts: 3 }
  const older = { ...state, services: [failed], drift: ['service worker: not running'] }
  await intake.take(principal, older, 'session-1')
  assert.deepEqual(await conditions(), [['service_failed', { service: 'worker', error: null }]])
  await intake.take(principal, state, 'session-1')
  const check = { name: 'gpus', state: 'failed' as const, line: '7 of 8 GPUs', since: '2026-01-01T00:00:00Z' }
  const newer = { ...failed, error: 'ended with exit code 1', output: ['no such table'] }
  await intake.take(principal, { ...state, services: [newer], checks: [check] }, 'session-1')
  assert.deepEqual(await conditions(), [
    ['service_failed', { service: 'worker', error: 'ended with exit code 1', line_1: 'no such table' }],
    ['unhealthy', { agent_check: 'gpus', says: '7 of 8 GPUs' }],
  ])
  await intake.take(principal, state, 'session-1')
  assert.deepEqual(await conditions(), [])
})
