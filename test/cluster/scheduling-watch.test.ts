// A scheduler that asks another replica every time, while all of them write, ends up with what is true.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOf, entry } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { openArrivals } from '#plane/core/arrivals.ts'
import { openFeed } from '#plane/core/feed.ts'
import { placeText, readPlace, type SchedulingPlace, watchScheduling } from '#plane/fleet/watch-scheduling.ts'
import { systemTimers } from '#platform/timers.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { postgresDatabase, type TestDatabase } from '../process/postgres-server.ts'
import { makeSigner, newNode, openPostgresStoreOn, someTimeMs } from '../store/harness.ts'

const by = { actor: 'system:test', source: null, correlation: null }
const nodes = Array.from({ length: 40 }, (_, number) => `gpu-${String(number).padStart(3, '0')}`)
const changesEach = 60

const openReplica = async (t: Scope, { target }: TestDatabase, signer: ReturnType<typeof makeSigner>) => {
  const store = await openPostgresStoreOn(target, signer)
  const feed = openFeed()
  store.onForeignCommit((committed) => feed.publish(committed))
  const arrivals = openArrivals(feed, systemTimers, 8)
  cleanup(t, async () => {
    arrivals.close()
    await store.close()
  })
  const change = async (id: string, allocations: number): Promise<void> => {
    const node = await store.get('node', id)
    assert.ok(node !== null)
    const committed = await store.commit({
      reads: [readOf('node', id, node)],
      writes: [{ put: 'node', value: { ...node.value, allocations } }],
      entries: [entry(by, someTimeMs, 'allocation.created', { node: id })],
    })
    if (committed !== 'lost-race') feed.publish(committed)
  }
  return { store, arrivals, change }
}

test('a scheduler that goes from replica to replica misses nothing that any of them writes', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t, 'migrated')
  const signer = makeSigner()
  const replicas = [await openReplica(t, database, signer), await openReplica(t, database, signer)] as const
  for (const id of nodes) await replicas[0].store.commit(newNode(id, { assignment: 'training' }))

  let writing: number = replicas.length
  const writers = replicas.map(async ({ change }, mine) => {
    for (let count = 0; count < changesEach; count++) {
      await change(nodes[(count * 7 + mine * 13) % nodes.length] ?? '', count + 100 * mine)
    }
    writing--
  })
  const seen = new Map<string, Node>()
  const schedule = async (): Promise<void> => {
    let at: SchedulingPlace | null = null
    for (let asked = 0; ; asked++) {
      const done = writing === 0
      const replica = replicas[asked % 2] ?? replicas[0]
      const page = await watchScheduling(replica.store, replica.arrivals, {
        vcluster: 'training',
        at,
        limit: 9,
        waitMs: at === null ? 0 : 50,
      })
      assert.ok(page.kind === 'page', JSON.stringify(page))
      for (const node of page.nodes) seen.set(node.id, node)
      at = readPlace(placeText(page.next))
      if (done && !page.more && page.nodes.length === 0) return
    }
  }
  await Promise.all([schedule(), ...writers])
  for (const id of nodes) {
    const truth = await replicas[1].store.get('node', id)
    assert.equal(seen.get(id)?.allocations, truth?.value.allocations, id)
  }
})
