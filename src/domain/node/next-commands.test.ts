import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberships, nodeRow, noonMs, profileRow, slots } from '../../../test/fakes/sample-rows.ts'
import { nextCommands } from './next-commands.ts'
import type { Condition, Node, Repair } from '#domain/core/node.ts'

const next = (node: Node, profile = 'gpu-cloud', nowMs = noonMs): string[] =>
  nextCommands(node, profileRow(profile).value, nowMs)
const condition = (name: Condition['name']): Condition => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })

test('a node in good order asks for nothing', () => {
  assert.deepEqual(next(nodeRow('active').value), [])
  assert.deepEqual(next(nodeRow('inactive').value), [])
})

test('one that waits for people names both answers', () => {
  const node = nodeRow('inactive', { conditions: [condition('needs_approval')] }).value
  assert.deepEqual(next(node), ['muster node approve gpu-001', 'muster node deny gpu-001'])
})

test('one whose certificates have all expired is let in by token, or repaired', () => {
  const expired = next(nodeRow('inactive').value, 'gpu-cloud', noonMs * 2)
  assert.deepEqual(expired, [
    'muster token create --node gpu-001',
    'muster node repair-bundle gpu-001 --reason REASON --out FILE',
  ])
  assert.doesNotMatch(next(nodeRow('inactive').value, 'hpc-diskless', noonMs * 2).join(), /token/)
})

test('one that joins by hardware is settled, and never given a token its profile refuses', () => {
  const node = nodeRow('active', { conditions: [condition('spoof_suspected')] }).value
  assert.match(next(node).join(), /token create --node gpu-001 --replace/)
  assert.deepEqual(next(node, 'hpc-diskless'), [
    'muster node quarantine gpu-001 --reason REASON',
    'muster node settle gpu-001 --reason REASON',
  ])
})

test('one that was revoked before its row was changed is revoked again', () => {
  const revokedBefore = { by: 'operator:alice', reason: 'stolen', atMs: 1 }
  const node = nodeRow('quarantined', { membership: { ...memberships.quarantined, revokedBefore } }).value
  assert.deepEqual(next(node), ['muster node revoke gpu-001 --reason REASON', 'muster node release gpu-001'])
})

test('a revoked node is registered anew as it was, and given a token where its profile takes one', () => {
  assert.deepEqual(next(nodeRow('revoked', { hardware: { macs: [], bmcSerial: null } }).value), [
    'muster node enroll gpu-001 --profile gpu-cloud',
    'muster token create --node gpu-001',
  ])
  const hardware = { macs: ['52:54:00:00:00:01'], bmcSerial: 'ID 7' }
  assert.deepEqual(next(nodeRow('revoked', { profile: 'hpc-diskless', hardware }).value, 'hpc-diskless'), [
    'muster node enroll gpu-001 --profile hpc-diskless --mac 52:54:00:00:00:01 --bmc-serial SERIAL',
  ])
})

test('of two holders an operator finds the right machine; a repaired one is released once its evidence has passed', () => {
  const [first, second] = next(nodeRow('active', { conditions: [condition('duplicate_identity')] }).value)
  assert.match(first ?? '', /repair-bundle/)
  assert.equal(second, 'muster node settle gpu-001 --reason REASON')
  const repair = (passed: boolean): Repair => ({
    ...{ id: 'r1', hash: 'h', by: 'operator:alice', reason: 'r', issuedAtMs: 0, expiresAtMs: 1, usedBy: null },
    evidence: { passed, atMs: 0, checks: [] },
  })
  const membership = { ...memberships.quarantined, slots: slots() }
  const after = (passed: boolean) => next(nodeRow('quarantined', { membership, repair: repair(passed) }).value)[0]
  assert.deepEqual([after(true), after(false)], ['muster node release gpu-001', 'muster node show gpu-001'])
})
