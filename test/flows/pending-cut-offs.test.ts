// Orders that one replica could not commit, and what becomes of them when operators go on at another one meanwhile.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { cutOffKey, type CutOffOrder } from '#domain/core/cut-off.ts'
import { entry } from '#domain/core/change.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import { workerBarredByPending } from '#plane/cut-off/barred-by-pending.ts'
import { openCutOffFiles } from '#plane/cut-off/cut-off-files.ts'
import { openPendingCutOffs, type PendingCutOff, type PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { performCutOff } from '#plane/boot/perform-cut-off.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { fleetRows, newRowsOf } from '../fakes/fleet-rows.ts'
import { day, hour, operator } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const halt = (renewals: boolean): CutOffOrder => ({ kind: 'halt', renewals, reason: 'x', by: operator })
const onNode = (kind: 'quarantine' | 'revoke', node: string): CutOffOrder => ({
  kind,
  node,
  reason: 'odd',
  by: operator,
})

type Replica = {
  readonly pending: Map<string, PendingCutOff>
  readonly cutOffs: PendingCutOffs
  /** Of channels that any node has here. */
  readonly epochs: number[]
  /** The store commits nothing for this order. */
  fail(order: CutOffOrder): Promise<void>
  repeat(): Promise<void>
}

/** As a start of a plane opens it: what is pending is what the files say. */
const startReplica = (plane: OperatorSetup): Replica => {
  const { store, feed, clock, timers, folder, authority, peers, receipts } = plane
  const files = openCutOffFiles(folder, silentLog)
  const pending = new Map(files.all().map((one) => [cutOffKey(one.order), one]))
  const core = { store, feed, clock, timers, random: systemRandom, log: silentLog }
  const epochs: number[] = []
  const cutOffs = openPendingCutOffs(
    core,
    { files, epochsHere: () => epochs, denyList: { reload: async () => {} } },
    pending,
  )
  const channels = {
    openSessions: () => [],
    pauseWhile: <T>(_node: string, run: () => Promise<T>) => run(),
    everySession: async () => [],
    isConnected: async () => false,
    cutOn: async () => 0,
    count: () => 0,
  }
  return {
    pending,
    cutOffs,
    epochs,
    async fail(order) {
      const done = await cutOffs.run(order, () => Promise.reject(new StoreFault('nothing was committed', 'full')))
      assert.equal('code' in done && done.code, 'CUT_OFF_PENDING')
    },
    repeat: () => cutOffs.repeat((order) => performCutOff(core, { authority, peers, receipts, channels }, order)),
  }
}

const setUpFleet = async (t: TestContext): Promise<OperatorSetup> => {
  const plane = await setUpOperatorServer(t)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003'])
    assert.ok((await plane.call('operator', 'POST', '/v1/nodes', { id })).status < 300)
  return plane
}

const elsewhere = async (plane: OperatorSetup, path: string, body: object = {}): Promise<void> => {
  plane.clock.advance(hour)
  const reply = await plane.call('platform-admin', 'POST', path, body)
  assert.ok(reply.status < 300, JSON.stringify(reply.body))
}

const count = async (plane: OperatorSetup, type: EntryType): Promise<number> => (await plane.journal(type)).length

test('an order that operators gave and undid at another replica meanwhile is dropped with an alert, however old it is', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  await first.fail(onNode('quarantine', 'gpu-001'))
  await first.fail(onNode('quarantine', 'gpu-002'))
  await first.fail(halt(false))
  for (const id of ['gpu-001', 'gpu-002']) await elsewhere(plane, `/v1/nodes/${id}/quarantine`, { reason: 'odd' })
  await elsewhere(plane, '/v1/issuance/halt', { reason: 'x' })
  await elsewhere(plane, '/v1/nodes/gpu-001/release')
  await elsewhere(plane, '/v1/issuance/resume')
  plane.clock.advance(7 * day)

  const again = startReplica(plane)
  assert.equal(again.pending.size, 3)
  await again.repeat()
  assert.equal(again.pending.size, 0)
  assert.equal((await plane.store.get('node', 'gpu-001'))?.value.membership.kind, 'inactive')
  assert.equal((await plane.store.get('node', 'gpu-002'))?.value.membership.kind, 'quarantined')
  assert.equal((await plane.call('viewer', 'GET', '/v1/issuance')).body.state, 'open')
  assert.deepEqual([await count(plane, 'node.quarantined'), await count(plane, 'issuance.halted')], [2, 1])
  const raised = async () =>
    (await plane.journal('alert.raised')).filter(({ body }) => /is dropped: operators/.test(String(body['reason'])))
  for (let look = 0; look < 100 && (await raised()).length < 2; look++)
    await new Promise((soon) => setTimeout(soon, 20))
  assert.equal((await raised()).length, 2)
  assert.equal(openCutOffFiles(plane.folder, silentLog).all().length, 0)
})

test('an order that was not undone since is carried out after a restart', async (t) => {
  const plane = await setUpFleet(t)
  await elsewhere(plane, '/v1/issuance/halt', { reason: 'x' })
  await elsewhere(plane, '/v1/issuance/resume')
  plane.clock.advance(hour)
  const first = startReplica(plane)
  await first.fail(onNode('quarantine', 'gpu-001'))
  await first.fail(halt(false))
  plane.clock.advance(7 * day)
  await startReplica(plane).repeat()
  assert.equal((await plane.store.get('node', 'gpu-001'))?.value.membership.kind, 'quarantined')
  assert.equal((await plane.call('viewer', 'GET', '/v1/issuance')).body.state, 'halted')
})

test('an order that is given again after it was undone elsewhere is carried out', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  await first.fail(halt(false))
  await first.fail(onNode('quarantine', 'gpu-001'))
  await elsewhere(plane, '/v1/issuance/halt', { reason: 'x' })
  await elsewhere(plane, '/v1/issuance/resume')
  await elsewhere(plane, '/v1/nodes/gpu-001/quarantine', { reason: 'odd' })
  await elsewhere(plane, '/v1/nodes/gpu-001/release')
  plane.clock.advance(hour)
  await first.fail({ ...halt(false), reason: 'y' })
  await first.fail(onNode('quarantine', 'gpu-001'))
  await startReplica(plane).repeat()
  assert.equal((await plane.call('viewer', 'GET', '/v1/issuance')).body.state, 'halted')
  assert.equal((await plane.store.get('node', 'gpu-001'))?.value.membership.kind, 'quarantined')
})

test('a stricter halt takes the place of a pending weaker one, in memory and in its file, and is as old as the first', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  await first.fail(halt(true))
  const { sinceMs } = first.pending.get('halt') ?? assert.fail()
  plane.clock.advance(hour)
  await first.fail(halt(false))
  for (const { pending } of [first, startReplica(plane)])
    assert.deepEqual([pending.get('halt')?.order, pending.get('halt')?.sinceMs], [halt(false), sinceMs])
  await startReplica(plane).repeat()
  const { issuance } = (await plane.store.get('domain', 'domain'))?.value ?? assert.fail()
  assert.equal(issuance.kind === 'halted' && issuance.renewals, false)
  assert.equal(issuance.kind, 'halted')
})

test('an order for another reason keeps what the earlier one denied', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  first.epochs.push(1)
  await first.fail(onNode('quarantine', 'gpu-001'))
  first.epochs[0] = 2
  await first.fail({ ...onNode('quarantine', 'gpu-001'), reason: 'odd again' })
  const [one] = startReplica(plane).pending.values()
  assert.equal(one?.order.reason, 'odd again')
  assert.deepEqual(
    one.denials.map((denial) => denial.kind === 'epoch' && denial.epoch),
    [1, 2],
  )
})

test('a stricter halt that is ordered while the weaker one is being committed is not lost', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  await first.fail(halt(true))
  await first.cutOffs.repeat(async () => {
    await first.fail(halt(false))
    return {}
  })
  assert.deepEqual(first.pending.get('halt')?.order, halt(false))
})

test('a revocation of a worker keeps it out from the first moment, and is carried out after a restart', async (t) => {
  const plane = await setUpFleet(t)
  const worker = fleetRows.find(({ put }) => put === 'worker')
  assert(worker?.put === 'worker')
  const { id } = worker.value
  const entries = [entry(operator, 0, 'worker.enrolled', {}, { worker: id })] as const
  await plane.store.commit({ reads: newRowsOf([worker]), writes: [worker], entries })
  const first = startReplica(plane)
  await first.fail({ kind: 'revoke-worker', worker: id, reason: 'stolen', by: operator })
  const again = startReplica(plane)
  for (const { pending } of [first, again]) {
    assert.equal(workerBarredByPending(pending, id)?.code, 'WORKER_REVOKED')
    assert.equal(workerBarredByPending(pending, 'east.another'), null)
  }
  assert.match(again.cutOffs.warnings().join(), new RegExp(`the revocation of the worker ${id} is in force`))
  await again.repeat()
  assert.equal((await plane.store.get('worker', id))?.value.revoked?.reason, 'stolen')
  assert.equal(again.pending.size, 0)
  // Another replica was given the same order.
  await first.repeat()
  assert.deepEqual([first.pending.size, await count(plane, 'worker.revoked')], [0, 1])
})

test('a revocation after a quarantine of one node: both are pending, and the node is revoked in the end', async (t) => {
  const plane = await setUpFleet(t)
  const first = startReplica(plane)
  await first.fail(onNode('quarantine', 'gpu-003'))
  await first.fail(onNode('revoke', 'gpu-003'))
  assert.deepEqual([...first.pending.keys()], ['quarantine/gpu-003', 'revoke/gpu-003'])
  const again = startReplica(plane)
  await again.repeat()
  await again.repeat()
  assert.equal(again.pending.size, 0)
  assert.equal((await plane.store.get('node', 'gpu-003'))?.value.membership.kind, 'revoked')
})
