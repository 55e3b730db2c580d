// Leaves of outputs that are not listed any more: what a crash or another replica has left is ended, and an idle plane looks at nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entry } from '#domain/core/change.ts'
import { noHardware, type NodeId } from '#domain/core/node.ts'
import { programKey, type Program } from '#domain/programs/program.ts'
import { openFeed } from '#plane/core/feed.ts'
import { followListedOutputs } from '#plane/programs/end-unlisted.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { nodeRow, slot } from '../fakes/sample-rows.ts'
import { newRows } from '../store/transfer-setup.ts'
import { day, operator, setUp, startMs } from './authority-setup.ts'

test('a look that found nothing left looks at nothing until something changes, on this replica or another', async (t) => {
  const setup = await setUp(t)
  let reads = 0
  const store: Store = {
    ...setup.store,
    get: (kind, key) => (reads++, setup.store.get(kind, key)),
    list: (kind, query) => (reads++, setup.store.list(kind, query)),
  }
  const feed = openFeed()
  const core = { store, feed, clock: setup.clock, random: systemRandom, timers: systemTimers, log: silentLog }
  const task = followListedOutputs(core)
  const readsOf = async (): Promise<number> => {
    reads = 0
    await task.run(store)
    return reads
  }
  const programOf = (node: NodeId): Program => ({
    ...{ node, epoch: 1, output: 'web', former: null, ended: null },
    current: { ...slot(`c-${node}`), notAfterMs: startMs + day, names: [] },
  })
  const addNode = async (id: NodeId): Promise<void> => {
    const { value } = nodeRow('active', { id, profile: 'gpu-cloud', hardware: noHardware })
    const writes = newRows({ put: 'node', value }, { put: 'program', value: programOf(id) })
    assert.notEqual(await setup.store.commit(writes), 'lost-race')
  }
  const isEnded = async (id: NodeId): Promise<boolean> =>
    (await setup.store.get('program', programKey(programOf(id))))?.value.ended !== null
  const elsewhere = (node: NodeId): Committed => ({
    ...{ kind: 'committed', origin: 'elsewhere', writes: [] },
    entries: [{ entry: entry(operator, startMs, 'node.unassigned', { node }) }] as unknown as Committed['entries'],
  })

  await addNode('gpu-001')
  await readsOf()
  assert.ok(await isEnded('gpu-001'), 'left by a plane that has stopped')
  assert.equal(await readsOf(), 0)

  await addNode('gpu-002')
  feed.publish(elsewhere('gpu-002'))
  await readsOf()
  assert.ok(await isEnded('gpu-002'), 'left by another replica')
  assert.equal(await readsOf(), 0)

  await addNode('gpu-003')
  const profile = (await setup.store.get('profile', 'gpu-cloud'))?.value ?? assert.fail('it is shipped')
  feed.publish({ ...elsewhere('gpu-003'), entries: [], writes: [{ put: 'profile', value: profile }] })
  await readsOf()
  assert.ok(await isEnded('gpu-003'), 'a list was changed elsewhere')
  assert.equal(await readsOf(), 0)
})
