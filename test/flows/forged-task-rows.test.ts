// Somebody who can write to the database alone makes no host execute anything: rows are changed behind the plane's back, and put back
// as they once were.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Change, RowKind, RowTypes, Write } from '#domain/core/change.ts'
import { noOverlay } from '#domain/fleet/overlay.ts'
import { rolloutNodesKey } from '#domain/tasks/rollout.ts'
import { openFeed } from '#plane/core/feed.ts'
import { adoptOverlays } from '#plane/fleet/adopt-overlays.ts'
import { sealingKeyOf } from '#plane/keys/seal.ts'
import { openEndedRights } from '#plane/seals/ended-rights.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { isSealedKind, openRowSeal, sealedKinds } from '#plane/seals/row-seal.ts'
import { sealedStore } from '#plane/seals/sealed-store.ts'
import { kindsSince } from '#plane/store/postgres/schema-since.ts'
import { dispatchedTo } from '#plane/tasks/dispatch.ts'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import { openWorkerIssuers } from '#plane/workers/worker-issuers.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { systemRandom } from '#platform/random.ts'
import { fleetRows, keyOf, newRowsOf } from '../fakes/fleet-rows.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { someTask } from '../fakes/task-rows.ts'
import type { Json } from '../process/operator-call.ts'
import { setUpTasks, principalOf } from './tasks-setup.ts'

const setUp = async (t: TestContext) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const { bare } = plane
  const write = async <K extends RowKind>(kind: K, key: string, value: RowTypes[K]): Promise<void> => {
    const version = (await bare.get(kind, key))?.version ?? 0
    const [entry] = await bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
    assert(entry !== undefined)
    const outcome = await bare.commit({
      reads: [{ row: kind, key, version }],
      writes: [{ put: kind, value } as Write],
      entries: [{ ...entry.entry, type: 'alert.raised' } as never],
    })
    assert.notEqual(outcome, 'lost-race')
  }
  const stored = async <K extends RowKind>(kind: K, key: string): Promise<RowTypes[K]> => {
    const row = await bare.get(kind, key)
    assert(row !== null, `${kind} ${key}`)
    return row.value
  }
  return {
    ...plane,
    write,
    stored,
    edit: async <K extends RowKind>(kind: K, key: string, changes: object): Promise<void> =>
      write(kind, key, { ...(await stored(kind, key)), ...changes }),
    goOn: async () => openRolloutUpkeep(plane.core).run(plane.store),
  }
}

test('a task that was written into the database, or changed there, is cancelled and not dispatched', async (t) => {
  const plane = await setUp(t)
  const nowMs = plane.clock.nowMs()
  const made = someTask({ epoch: 1, createdAtMs: nowMs - 1000, expiresAtMs: nowMs + 1000_000 })
  await plane.write('task', made.id, made)
  const { id } = await plane.queue('gpu-002')
  await plane.edit('task', id, { parameters: { name: 'sshd', action: 'stop' } })
  for (const node of ['gpu-001', 'gpu-002']) assert.equal(await plane.dispatch(node), null)
  for (const task of [made.id, id]) {
    const { state, cancelled } = await plane.show(task)
    assert.equal(state, 'cancelled')
    assert.match(cancelled.why, /is not as a plane of this domain wrote it/)
  }
  assert.deepEqual([...new Set(plane.forged)].toSorted(), [`task ${made.id}`, `task ${id}`].toSorted())
  const honest = await plane.queue('gpu-002')
  assert.equal((await plane.dispatch('gpu-002'))?.id, honest.id)
})

test('a cancelled task that is put back as it was stays where it is', async (t) => {
  const plane = await setUp(t)
  const { id } = await plane.queue('gpu-001')
  const before = await plane.stored('task', id)
  await plane.ask('POST', `/v1/tasks/${id}/cancel`, {})
  await plane.write('task', id, before)
  assert.equal(await plane.dispatch('gpu-001'), null)
})

test('what was dispatched and changed in the database is not sent again', async (t) => {
  const plane = await setUp(t)
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  assert.equal((await dispatchedTo(plane.store, principalOf('gpu-001'))).length, 1)
  await plane.edit('task', id, { parameters: { name: 'sshd', action: 'stop' } })
  assert.deepEqual(await dispatchedTo(plane.store, principalOf('gpu-001')), [])
})

test('a rollout, its list of nodes and its plan count as they were written', async (t) => {
  const plane = await setUp(t)
  const action = { kind: 'create-tasks', type: 'service', parameters: { name: 'dcgm', action: 'restart' } }
  const planned = async (): Promise<string> =>
    (await plane.ask('POST', '/v1/plans', { action: { ...action, select: { vcluster: 'training' } } })).id
  const begun = async (): Promise<string> => {
    const id = await planned()
    await plane.ask('POST', `/v1/plans/${id}/apply`, {})
    return id
  }
  const changed = await begun()
  await plane.edit('task-rollout', changed, { parameters: { name: 'sshd', action: 'stop' } })
  const listed = await begun()
  await plane.edit('rollout-nodes', rolloutNodesKey({ rollout: listed, part: 0 }), { nodes: ['gpu-002'] })
  const revived = await begun()
  const before = await plane.stored('task-rollout', revived)
  await plane.ask('POST', `/v1/rollouts/${revived}/cancel`, {})
  await plane.write('task-rollout', revived, before)
  for (let turn = 0; turn < 3; turn++) await plane.goOn()
  for (const id of [changed, listed, revived]) {
    assert.equal((await plane.ask('GET', `/v1/rollouts/${id}`)).state, 'cancelled')
    assert.deepEqual((await plane.ask('GET', `/v1/tasks?rollout=${id}`)).tasks, [])
  }
  const plan = await planned()
  const { action: kept } = await plane.stored('plan', plan)
  await plane.edit('plan', plan, { action: { ...kept, parameters: { name: 'sshd', action: 'stop' } } })
  const { status, body } = await plane.call('platform-admin', 'POST', `/v1/plans/${plan}/apply`, {})
  assert.deepEqual([status, body.code], [409, 'PLAN_STALE'])
})

test('what a vCluster or the domain allows counts only as an operator set it', async (t) => {
  const plane = await setUp(t)
  const refused = async (type: string, parameters: object): Promise<string> =>
    (await plane.call('operator', 'POST', '/v1/tasks', { node: 'gpu-001', type, parameters })).body.code
  await plane.edit('vcluster', 'training', { tasks: { types: ['run', 'service'] } })
  await plane.edit('domain', 'domain', { tasks: { run: true, reboot: true, approveRunAbove: null } })
  assert.equal(await refused('run', { name: 'x' }), 'TASK_TYPE_NOT_ALLOWED')
  assert.equal(await refused('service', { name: 'x', action: 'restart' }), 'TASK_TYPE_NOT_ALLOWED')
  assert.ok(plane.forged.includes('vcluster training') && plane.forged.includes('domain domain'))
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['service'] } })
  await plane.queue('gpu-001')
  // The policy of another vCluster, with its MAC.
  await plane.ask('POST', '/v1/vclusters', { name: 'lab', set: { 'tasks.types': ['reboot', 'service'] } })
  await plane.ask('PATCH', '/v1/domain', { set: { 'tasks.reboot': true } })
  await plane.edit('vcluster', 'training', { tasks: (await plane.stored('vcluster', 'lab')).tasks })
  assert.equal(await refused('reboot', {}), 'TASK_TYPE_NOT_ALLOWED')
})

const services = (...names: string[]) => names.map((name) => ({ name, command: [`/usr/sbin/${name}`, '-d'] }))
const overlayOf = (...names: string[]) => ({ files: [], services: services(...names), checks: [] })

test('what a vCluster or the domain has hosts start counts only as an operator set it', async (t) => {
  const plane = await setUp(t)
  const started = async (name: string): Promise<readonly string[]> =>
    ((await plane.store.get('vcluster', name))?.value.overlay.services ?? []).map(({ command }) => command.join(' '))
  const timeSync = async () => (await plane.store.get('domain', 'domain'))?.value.maintenance.timeSync
  await plane.ask('PATCH', '/v1/vclusters/training', { overlay: overlayOf('exporter') })
  await plane.ask('POST', '/v1/vclusters', { name: 'lab', overlay: overlayOf('miner') })
  await plane.ask('PATCH', '/v1/domain', { set: { 'maintenance.timeSync': services('chronyd')[0] } })
  assert.deepEqual(await started('training'), ['/usr/sbin/exporter -d'])
  assert.deepEqual(await timeSync(), services('chronyd')[0])
  // As it came back, without a MAC in it.
  assert.deepEqual((await plane.ask('GET', '/v1/domain')).maintenance.timeSync, services('chronyd')[0])
  const { overlay } = await plane.stored('vcluster', 'training')
  const { maintenance } = await plane.stored('domain', 'domain')
  const { mac: _, ...bare } = overlay as Json
  const argument = { ...overlay, services: [{ name: 'exporter', command: ['/usr/sbin/exporter', '--exec=/tmp/x'] }] }
  const checked = { name: 'exporter', command: ['/usr/sbin/exporter'], intervalMs: 60_000, timeoutMs: 1000 }
  const others = [argument, { ...overlay, checks: [checked] }, bare, (await plane.stored('vcluster', 'lab')).overlay]
  for (const other of others) {
    plane.forged.splice(0)
    await plane.edit('vcluster', 'training', { overlay: other })
    assert.deepEqual((await plane.store.get('vcluster', 'training'))?.value.overlay, noOverlay)
    assert.deepEqual(plane.forged, ['vcluster training'])
  }
  const altered = { ...maintenance.timeSync, command: ['/bin/sh', '-c', 'id'] }
  for (const other of [altered, services('chronyd')[0]]) {
    await plane.edit('domain', 'domain', { maintenance: { ...maintenance, timeSync: other } })
    assert.equal(await timeSync(), null)
  }
  await plane.ask('PATCH', '/v1/vclusters/training', { overlay: overlayOf('exporter') })
  assert.deepEqual(await started('training'), ['/usr/sbin/exporter -d'])
})

test('overlays of a release before start what they say until they are adopted, and have a MAC from then on', async (t) => {
  const plane = await setUp(t)
  const { bare, keySeal } = plane
  let adopted = false
  const ended = { contradicts: () => false, overlaysAdopted: () => adopted }
  const rowSeal = openRowSeal(sealingKeyOf(Buffer.alloc(32, 5), systemRandom), () => 'test')
  const store = sealedStore(bare, { rowSeal, keySeal, ended, onForged: () => {} })
  await plane.ask('POST', '/v1/vclusters', { name: 'late' })
  const ofBefore = { ...noOverlay, services: services('exporter') }
  await plane.edit('vcluster', 'training', { overlay: ofBefore })
  const { maintenance } = await plane.stored('domain', 'domain')
  await plane.edit('domain', 'domain', { maintenance: { ...maintenance, timeSync: services('chronyd')[0] } })
  const seen = async () => [
    ...(await Promise.all(
      ['training', 'late'].map(async (name) => (await store.get('vcluster', name))?.value.overlay),
    )),
    (await store.get('domain', 'domain'))?.value.maintenance.timeSync,
  ]
  assert.deepEqual(await seen(), [ofBefore, noOverlay, services('chronyd')[0]])
  await adoptOverlays({ ...plane.core, store })
  adopted = true
  assert.deepEqual(await seen(), [ofBefore, noOverlay, services('chronyd')[0]])
  await plane.edit('vcluster', 'late', { overlay: ofBefore })
  assert.deepEqual(await seen(), [ofBefore, noOverlay, services('chronyd')[0]])
  const made = await openEndedRights({ store: bare, feed: openFeed(), clock: plane.clock })
  assert.equal(made.overlaysAdopted(), true, 'the first signer was made, and the journal says so after a start')
})

test('a plan without a MAC is taken while replicas run that give none, and in no later upgrade', async (t) => {
  const plane = await setUp(t)
  const { bare, keySeal } = plane
  const { id } = await plane.ask('POST', '/v1/plans', {
    action: { kind: 'revoke-nodes', select: { names: ['gpu-001'] }, reason: 'x' },
  })
  const { mac: _, ...without } = (await plane.stored('plan', id)) as Json
  await plane.write('plan', id, without as RowTypes['plan'])
  const ended = { contradicts: () => false, overlaysAdopted: () => true }
  const rowSeal = openRowSeal(sealingKeyOf(Buffer.alloc(32, 5), systemRandom), () => 'test')
  const isForged = async (schema: number | null): Promise<boolean | undefined> => {
    const upgrade = schema === null ? null : { schema, newest: 9, waitsFor: [], failure: null }
    const from = { ...bare, unfinishedUpgrade: () => upgrade }
    return (await sealedStore(from, { rowSeal, keySeal, ended, onForged: () => {} }).get('plan', id))?.value.forged
  }
  const since = kindsSince['task-signers'].schema
  assert.equal(await isForged(since - 1), undefined)
  for (const schema of [since, since + 1, null]) assert.equal(await isForged(schema), true, String(schema))
})

test('a row of the domain that has lost its policy allows nothing, and stops nothing else', async (t) => {
  const plane = await setUp(t)
  const { tasks: _, ...bare } = await plane.stored('domain', 'domain')
  await plane.write('domain', 'domain', bare as RowTypes['domain'])
  assert.deepEqual((await plane.ask('GET', '/v1/domain')).tasks, { run: false, reboot: false, approveRunAbove: null })
  await plane.queue('gpu-002')
  assert.notEqual(await plane.dispatch('gpu-002'), null)
})

test('an issuer of workers that was written into the database has no workers, and one that was removed stays so', async (t) => {
  const plane = await setUp(t)
  const east = cluster('RS256', 'https://east.example')
  const { iss, aud, sub } = east
  const add = (name: string): Promise<Json> =>
    plane.ask('POST', '/v1/worker-issuers', {
      ...{ name, iss: `${iss}/${name}`, aud, sub, jwks: east.jwks() },
      ...{ types: ['service'], vclusters: ['training'] },
    })
  for (const name of ['east', 'west', 'south']) await add(name)
  const east0 = await plane.stored('worker-issuer', 'east')
  await plane.write('worker-issuer', 'north', { ...east0, name: 'north', iss: 'https://north.example' })
  await plane.edit('worker-issuer', 'west', { types: ['run', 'service'] })
  const removed = await plane.stored('worker-issuer', 'south')
  await plane.ask('POST', '/v1/worker-issuers/south/remove', {})
  await plane.write('worker-issuer', 'south', removed)
  const names = async () => (await openWorkerIssuers(plane.core)).all().map(({ name }) => name)
  assert.deepEqual(await names(), ['east'])
  for (const name of ['west', 'south']) {
    await plane.ask('POST', `/v1/worker-issuers/${name}/remove`, {})
    plane.clock.advance(1000)
    await add(name)
  }
  assert.deepEqual(await names(), ['east', 'south', 'west'])
})

test('a task signer that was written into the database is in no statement, and the signers are made anew by an operator', async (t) => {
  const plane = await setUp(t)
  const signers = await plane.stored('task-signers', 'domain')
  const [own] = signers.signers
  assert(own !== undefined)
  const foreign = { ...own, key: 'f'.repeat(40), state: { kind: 'grace', sinceMs: 0, untilMs: 4e12 } as const }
  await plane.edit('task-signers', 'domain', { signers: [...signers.signers, foreign] })
  const list = await plane.ask('GET', '/v1/task-signers')
  assert.match(list.warnings.join(), /not as a plane wrote it.*muster signer rotate --now/)
  assert.equal(
    (await plane.call('platform-admin', 'POST', '/v1/task-signers/rotate', {})).body.code,
    'SIGNERS_NOT_READY',
  )
  const after = await plane.ask('POST', '/v1/task-signers/rotate', { how: 'now' })
  assert.deepEqual(
    after.signers.map(({ key, state }: Json) => [key === own.key || key === foreign.key, state]),
    [[false, 'signing']],
  )
  assert.notEqual(plane.taskSigners.key(), null)
})

test('an operator key with a changed row queues nothing more', async (t) => {
  const plane = await setUp(t)
  const service = { node: 'gpu-001', type: 'service', parameters: { name: 'dcgm', action: 'restart' } }
  const { id } = (await plane.call('operator', 'POST', '/v1/tasks', service)).body
  const { queuedBy } = await plane.stored('task', id)
  const [key] = await plane.bare.list('operator-key', { where: { id: queuedBy.id }, after: null, limit: 1 })
  assert(key !== undefined)
  await plane.edit('operator-key', key.value.hash, { expiresAtMs: 4e12 })
  assert.equal(await plane.dispatch('gpu-001'), null)
  assert.match((await plane.show(id)).cancelled.why, /operator key that queued it is not on record/)
})

test('what was revoked, withdrawn or cancelled stays so when its row is put back, also after a start', async (t) => {
  const plane = await setUp(t)
  const { store, bare, clock } = plane
  const worker = fleetRows.find(({ put }) => put === 'worker')
  assert(worker?.put === 'worker')
  const [entry] = await bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  const entries = [{ ...entry?.entry, type: 'alert.raised' } as never]
  await store.commit({ reads: newRowsOf([worker]), writes: [worker], entries } as unknown as Change)
  const key = await plane.ask('POST', '/v1/keys', { name: 'leaver', role: 'operator' })
  const { id: task } = await plane.queue('gpu-001')
  const hash = sha256Hex(key.secret)
  const before = {
    worker: await plane.stored('worker', worker.value.id),
    key: await plane.stored('operator-key', hash),
    signers: await plane.stored('task-signers', 'domain'),
    task: await plane.stored('task', task),
  }
  const [signer] = before.signers.signers
  await plane.ask('POST', `/v1/workers/${worker.value.id}/revoke`, { reason: 'stolen' })
  await plane.ask('POST', `/v1/keys/${key.key.id}/revoke`, {})
  await plane.ask('POST', '/v1/task-signers/withdraw', { key: signer?.key, reason: 'stolen' })
  await plane.ask('POST', `/v1/tasks/${task}/cancel`, {})
  await plane.write('worker', worker.value.id, before.worker)
  await plane.write('operator-key', hash, before.key)
  await plane.write('task-signers', 'domain', before.signers)
  await plane.write('task', task, before.task)

  const sealing = sealingKeyOf(Buffer.alloc(32, 5), systemRandom)
  const ended = await openEndedRights({ store: bare, feed: openFeed(), clock })
  const parts = { rowSeal: openRowSeal(sealing, () => 'test'), keySeal: plane.keySeal, ended, onForged: () => {} }
  for (const one of [store, sealedStore(bare, parts)]) {
    assert.equal((await one.get('worker', worker.value.id))?.value.forged, true)
    assert.equal((await one.get('task-signers', 'domain'))?.value.forged, true)
    assert.equal((await one.get('task', task))?.value.forged, true)
    const where = { id: key.key.id as string }
    assert.deepEqual(await one.list('operator-key', { where, after: null, limit: 1 }), [])
  }
})

/** Another value of the same type. */
const changed = (value: unknown): unknown => {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'string') return `${value}x`
  if (Array.isArray(value)) return [...(value as unknown[]), 'x']
  return { ...(value as object), extra: 1 }
}

test('every field of a row with a MAC is under it, and the row comes back as it was written', async (t) => {
  const plane = await setUp(t)
  const withMac = fleetRows.filter(({ put }) => isSealedKind(put))
  assert.deepEqual([...new Set(withMac.map(({ put }) => put))].toSorted(), [...sealedKinds].toSorted())
  for (const write of withMac.filter(({ put }) => put !== 'task-signers')) {
    const key = keyOf(write)
    const [entry] = await plane.bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
    const change = {
      reads: newRowsOf([write]),
      writes: [write],
      entries: [{ ...entry?.entry, type: 'alert.raised' } as never],
    }
    const committed = await plane.store.commit(change as unknown as Change)
    assert(committed !== 'lost-race')
    assert.deepEqual(committed.writes, [write])
    assert.deepEqual((await plane.store.get(write.put, key))?.value, write.value)
    const good = await plane.stored(write.put, key)
    assert.equal(typeof (good as Json)['mac'], 'string')
    for (const [field, value] of Object.entries(write.value)) {
      const altered = { ...good, [field]: changed(value) }
      // Filed under the same key: the key itself is one of the fields.
      if (keyOf({ put: write.put, value: altered } as Write) !== key) continue
      const written = await plane.write(write.put, key, altered).then(
        () => true,
        (error: unknown) => {
          // A column is made of it, and PostgreSQL takes no such value there.
          if (error instanceof StoreFault) return false
          throw error
        },
      )
      if (!written) continue
      const found: Json = await plane.store.get(write.put, key)
      assert.equal(found['value'].forged, true, `${write.put} ${field}`)
    }
    await plane.write(write.put, key, good)
    assert.deepEqual((await plane.store.list(write.put, { after: null, limit: 10 }))[0]?.value, write.value)
  }
})
