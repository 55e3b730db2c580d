import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import {
  doubtedDomainRow,
  domainRow,
  haltedDomainRow,
  memberships,
  nodeRow,
  noonMs,
  slot,
  slots,
  vclusterRow,
} from '../../../test/fakes/sample-rows.ts'
import {
  claimed,
  keyEnded,
  keyOnRecord,
  lineRow,
  nodePrincipal,
  signersRow,
  someTaskId,
  taskRow,
  workerOnRecord,
} from '../../../test/fakes/task-rows.ts'
import { decideDispatch, lanesInTurn, type DispatchFacts } from './dispatch-task.ts'
import type { Signer } from './signers.ts'
import { emptyLine, mostDispatched } from './task.ts'

const blue = (types: readonly string[]) => vclusterRow('blue', { tasks: { types } })

const dispatch = (changes: Partial<DispatchFacts> = {}) =>
  decideDispatch({
    ...{
      task: taskRow(),
      line: lineRow(),
      node: nodeRow('active', { assignment: 'blue' }),
      vcluster: blue(['service']),
    },
    ...{ domain: domainRow(), queuer: keyOnRecord(), principal: nodePrincipal(), signers: signersRow() },
    ...{ by: { actor: 'node:gpu-001', source: '192.0.2.1', correlation: null }, nowMs: noonMs, ...changes },
  })

const waiting = (changes: Partial<DispatchFacts>): string => {
  const verdict = dispatch(changes)
  assert.equal(verdict.kind, 'waits', JSON.stringify(verdict))
  return verdict.kind === 'waits' ? verdict.why : ''
}

test('a dispatch records epoch, certificate, signer and counter, and relies on every row that could forbid it', () => {
  const verdict = expectDecided(dispatch())
  assert.deepEqual(verdict.task.state, {
    ...claimed({ dispatchedAtMs: noonMs, issuedAtMs: noonMs, counter: 7 }),
  })
  assert.deepEqual(writesOf(verdict, 'task-line'), [
    { ...emptyLine('gpu-001'), counter: 7, dispatched: 1, lastOf: 'operator' },
  ])
  assert.deepEqual(entryTypesOf(verdict), ['task.dispatched'])
  assert.equal(verdict.change.entries[0]?.correlation, 'story-of-the-task')
  assert.deepEqual(readsOf(verdict), [
    `task/${someTaskId}@2`,
    'task-line/gpu-001@9',
    'node/gpu-001@7',
    'domain/domain@3',
    'task-signers/domain@6',
    'vcluster/blue@4',
    'operator-key/hash-of-key-1@3',
  ])
})

test('a renewed certificate of the same epoch claims a task under its own fingerprint', () => {
  const node = nodeRow('active', {
    assignment: 'blue',
    membership: { ...memberships.active, slots: slots({ pending: slot('b2') }) },
  })
  const principal = nodePrincipal({ credential: { by: 'certificate', issuer: 'ca1', serial: 'b2', spki: 'key-of-b2' } })
  const { state } = expectDecided(dispatch({ node, principal })).task
  assert.equal(state.kind === 'dispatched' && state.fingerprint, 'hash-of-b2')
})

test('T30: a certificate that is not one of the node as it is now gets nothing', () => {
  const stranger = /does not hold the identity/
  const of = (serial: string) => ({ by: 'certificate', issuer: 'ca1', serial, spki: 'k' }) as const
  assert.match(waiting({ principal: nodePrincipal({ epoch: 3 }) }), stranger)
  assert.match(waiting({ principal: nodePrincipal({ credential: of('older') }) }), stranger)
  assert.match(waiting({ principal: nodePrincipal({ id: 'gpu-002' }) }), stranger)
  assert.match(waiting({ principal: nodePrincipal({ evidenceOnly: true }) }), stranger)
  for (const kind of ['quarantined', 'revoked', 'registered'] as const)
    assert.match(waiting({ node: nodeRow(kind, { assignment: 'blue' }) }), stranger)
})

test('a halt and a store in doubt stop every dispatch, and what waits goes on waiting', () => {
  assert.match(waiting({ domain: haltedDomainRow(true) }), /halted/)
  assert.match(waiting({ domain: haltedDomainRow(false) }), /halted/)
  assert.match(waiting({ domain: doubtedDomainRow() }), /in doubt/)
})

test('without a signer that signs, and with signers that no plane wrote, nothing is dispatched', () => {
  const retired = { ...signersRow().value.signers[0], state: { kind: 'retired', sinceMs: noonMs } } as Signer
  assert.match(waiting({ signers: signersRow({ signers: [retired] }) }), /no task signer signs/)
  assert.match(waiting({ signers: signersRow({ forged: true }) }), /no task signer signs/)
})

test('T31: an expired task never leaves', () => {
  const verdict = expectDecided(dispatch({ nowMs: taskRow().value.expiresAtMs }))
  assert.deepEqual([verdict.task.state.kind, entryTypesOf(verdict)], ['expired', ['task.expired']])
  assert.equal(verdict.change.entries[0]?.actor, 'system:tasks')
})

test('what may not be queued any more is cancelled instead of being dispatched', () => {
  const cancelledBy = (changes: Partial<DispatchFacts>): string => {
    const { state } = expectDecided(dispatch(changes)).task
    return state.kind === 'cancelled' ? `${state.by}: ${state.why}` : state.kind
  }
  assert.match(cancelledBy({ queuer: keyEnded }), /^system:tasks: the operator key .* was revoked: alice$/)
  assert.match(cancelledBy({ vcluster: blue([]) }), /not allowed any more: vCluster blue allows no types/)
  assert.match(cancelledBy({ queuer: keyOnRecord('viewer') }), /not allowed any more: tasks need the role operator/)
  assert.match(cancelledBy({ task: taskRow({ epoch: 3 }) }), /its node is in epoch 4 by now/)
})

test('a task that was dispatched is not dispatched again', () => {
  waiting({ task: taskRow({ state: claimed() }) })
})

test('no more tasks of a node are under way than the limit', () => {
  assert.match(waiting({ line: lineRow({ dispatched: mostDispatched }) }), /4 tasks of this node/)
  expectDecided(dispatch({ line: lineRow({ dispatched: mostDispatched - 1 }) }))
})

test('the last place of a node is for operators: tasks of workers leave it free, however long they run', () => {
  const ofWorker = taskRow({ queuedBy: { kind: 'worker', id: 'east.pod-1', name: 'east.pod-1' } })
  const worker = { task: ofWorker, queuer: workerOnRecord() }
  const full = lineRow({ dispatched: 3, dispatchedOfWorkers: 3 })
  assert.match(waiting({ ...worker, line: full }), /3 tasks of workers/)
  expectDecided(dispatch({ line: full }))
  const verdict = expectDecided(dispatch({ ...worker, line: lineRow({ dispatched: 3, dispatchedOfWorkers: 2 }) }))
  const after = { ...emptyLine('gpu-001'), counter: 7, dispatched: 4, dispatchedOfWorkers: 3, lastOf: 'worker' }
  assert.deepEqual(writesOf(verdict, 'task-line'), [after])
})

test('operators and workers take turns, and who waits alone has every turn', () => {
  const first = (queued: number, ofWorkers: number, lastOf: 'operator' | 'worker' | null, dispatchedOfWorkers = 0) =>
    lanesInTurn(lineRow({ queued, queuedOf: ofWorkers === 0 ? {} : { east: ofWorkers }, lastOf, dispatchedOfWorkers }))
  assert.deepEqual(lanesInTurn(null), ['operator', 'worker'])
  assert.deepEqual(first(501, 500, null), ['operator', 'worker'])
  assert.deepEqual(first(501, 500, 'worker'), ['operator', 'worker'])
  assert.deepEqual(first(501, 500, 'operator'), ['worker', 'operator'])
  assert.deepEqual(first(500, 500, 'worker'), ['worker', 'operator'])
  assert.deepEqual(first(1, 0, 'operator'), ['operator', 'worker'])
  // A line that counts too little, since it was lost, hides nothing.
  assert.deepEqual(first(0, 0, 'operator'), ['operator', 'worker'])
  assert.deepEqual(first(501, 500, 'operator', 3), ['operator'])
})
