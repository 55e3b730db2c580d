import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from './change.ts'
import { cutOffKey, forbids, isCutOff, isOverruled, isSameOrder, type CutOffOrder } from './cut-off.ts'

const by = { actor: 'operator:anna', source: null, correlation: null }
const entryOf = (type: string) => ({ type }) as unknown as Change['entries'][number]
const changeOf = (types: readonly string[], writes: readonly unknown[]): Pick<Change, 'entries' | 'writes'> => ({
  entries: types.map(entryOf) as unknown as Change['entries'],
  writes: writes as Change['writes'],
})
const certificate = (node: string, issuer: string) => ({
  put: 'certificate',
  value: { issuer, subject: { kind: 'node', node, epoch: 1 } },
})

test('a revocation, a quarantine, a halt, a withdrawal and the progress of a receipt may use the reserve, and nothing else', () => {
  for (const type of ['host.revoked', 'node.quarantined', 'issuance.halted', 'ca.compromised'])
    assert.equal(isCutOff(changeOf(['alert.raised', type], [{ put: 'node' }])), true, type)
  assert.equal(isCutOff(changeOf(['receipt.effective'], [{ put: 'receipt' }])), true)
  assert.equal(isCutOff(changeOf(['host.enrolled'], [certificate('gpu-001', 'ca1')])), false)
  assert.equal(isCutOff(changeOf(['issuance.resumed'], [{ put: 'domain' }])), false)
  assert.equal(isCutOff(changeOf(['refused'], [])), false)
  assert.equal(isCutOff(changeOf(['receipt.effective'], [{ put: 'receipt' }, { put: 'node' }])), false)
})

test('a pending order forbids certificates for what it names, and no others', () => {
  const revoke: CutOffOrder = { kind: 'revoke', node: 'gpu-001', reason: 'stolen', by }
  const withdraw: CutOffOrder = { kind: 'withdraw', issuer: 'ca1', reason: 'out', by }
  const halt: CutOffOrder = { kind: 'halt', renewals: false, reason: 'x', by }
  const renewal = changeOf(['node.renewed'], [certificate('gpu-001', 'ca1')])
  const other = changeOf(['node.recovered'], [certificate('gpu-002', 'ca2')])
  assert.deepEqual([forbids(revoke, renewal), forbids(revoke, other)], [true, false])
  assert.deepEqual([forbids(withdraw, renewal), forbids(withdraw, other)], [true, false])
  assert.deepEqual([forbids(halt, renewal), forbids(halt, other)], [true, true])
  assert.deepEqual(
    [forbids({ ...halt, renewals: true }, renewal), forbids({ ...halt, renewals: true }, other)],
    [false, true],
  )
  assert.equal(forbids(halt, changeOf(['host.revoked'], [{ put: 'node' }])), false)
  assert.equal(forbids(halt, changeOf(['enrollment_token.created'], [{ put: 'token' }])), false)
})

test('a pending revocation of a worker forbids its certificates and tasks, but for the end of a task', () => {
  const revoke: CutOffOrder = { kind: 'revoke-worker', worker: 'east.pod-1', reason: 'stolen', by }
  const certificateOf = (worker: string) => ({
    put: 'certificate',
    value: { issuer: 'ca1', subject: { kind: 'worker', worker } },
  })
  const taskOf = (id: string, state: string, kind = 'worker') => ({
    put: 'task',
    value: { queuedBy: { kind, id }, state: { kind: state } },
  })
  const isForbidden = (write: object): boolean => forbids(revoke, changeOf(['x'], [write]))
  assert.deepEqual([certificateOf('east.pod-1'), certificateOf('east.pod-2')].map(isForbidden), [true, false])
  assert.deepEqual(
    ['queued', 'dispatched', 'cancelled', 'completed'].map((state) => isForbidden(taskOf('east.pod-1', state))),
    [true, true, false, false],
  )
  assert.equal(isForbidden(taskOf('east.pod-2', 'queued')), false)
  assert.equal(isForbidden(taskOf('east.pod-1', 'queued', 'operator')), false)
  assert.equal(forbids(revoke, changeOf(['worker.revoked'], [certificateOf('east.pod-1')])), false)
  assert.equal(isOverruled(revoke, ['worker.enrolled', 'worker.revoked']), false)
})

test('the same order has the same key, whichever operator gives it', () => {
  const order: CutOffOrder = { kind: 'quarantine', node: 'gpu-001', reason: 'odd', by }
  assert.equal(cutOffKey(order), cutOffKey({ ...order, reason: 'other', by: { ...by, actor: 'operator:ben' } }))
  assert.notEqual(cutOffKey(order), cutOffKey({ ...order, kind: 'revoke' }))
})

test('an order is given once more when it is of the same operator, for the same reason and as strict', () => {
  const halt: CutOffOrder = { kind: 'halt', renewals: true, reason: 'x', by }
  assert.equal(isSameOrder(halt, { ...halt, by: { ...by, correlation: 'another call' } }), true)
  assert.equal(isSameOrder(halt, { ...halt, renewals: false }), false)
  assert.equal(isSameOrder(halt, { ...halt, reason: 'y' }), false)
  assert.equal(isSameOrder(halt, { ...halt, by: { ...by, actor: 'operator:ben' } }), false)
})

test('a pending order is overruled by later operator actions, and not by what a stolen machine does', () => {
  const about = { node: 'gpu-001', reason: 'odd', by }
  const [quarantine, revoke] = [
    { kind: 'quarantine', ...about },
    { kind: 'revoke', ...about },
  ] as const
  const halt: CutOffOrder = { kind: 'halt', renewals: false, reason: 'x', by }
  assert.equal(isOverruled(quarantine, ['node.quarantined', 'node.released']), true)
  assert.equal(isOverruled(quarantine, ['host.revoked', 'node.registered']), true)
  assert.equal(isOverruled(quarantine, ['node.recovered', 'host.enrolled', 'node.quarantined']), false)
  assert.equal(isOverruled(revoke, ['host.revoked', 'host.enrolled']), true)
  assert.equal(isOverruled(revoke, ['node.quarantined', 'node.released', 'node.recovered']), false)
  assert.equal(isOverruled(halt, ['issuance.halted']), false)
  assert.equal(isOverruled(halt, ['issuance.halted', 'issuance.resumed']), true)
  assert.equal(isOverruled({ kind: 'withdraw', issuer: 'ca1', reason: 'x', by }, ['issuance.resumed']), false)
})

test('a revocation with another reason code is another order; one from before there were codes is unspecified', () => {
  const order: CutOffOrder = { kind: 'revoke', node: 'gpu-001', reason: 'stolen', by }
  assert.equal(isSameOrder(order, { ...order, reasonCode: 'unspecified' }), true)
  assert.equal(isSameOrder(order, { ...order, reasonCode: 'key-compromise' }), false)
})
