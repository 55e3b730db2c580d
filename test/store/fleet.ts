// What every store keeps of the fleet's rows: they are found by key, listed by what they belong to, and forgotten in time.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { releasedKeptMs } from '#domain/fleet/allocation.ts'
import type { Write } from '#domain/core/change.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { allocation, fleetRows, keyOf, newRowsOf, receipt } from '../fakes/fleet-rows.ts'
import type { StoreUnderTest } from './contract.ts'
import { change } from './harness.ts'

export const fleetRowsContract = (name: string, openEmpty: () => Promise<StoreUnderTest>): void => {
  describe(`${name} keeps the rows of a fleet`, () => {
    let under: StoreUnderTest
    let store: Store
    beforeEach(async () => {
      under = await openEmpty()
      store = under.store
    })
    afterEach(async () => {
      await store.close()
      await under.remove()
    })
    const keep = async (writes: readonly Write[]): Promise<void> => {
      assert.notEqual(await store.commit(change(newRowsOf(writes), writes)), 'lost-race')
    }

    test('each kind is found by its key and in its list, also after the store was opened again', async () => {
      await keep(fleetRows)
      store = await under.reopen()
      for (const write of fleetRows) {
        assert.deepEqual((await store.get(write.put, keyOf(write)))?.value, write.value, write.put)
        const listed = await store.list(write.put, { after: null, limit: 10 })
        assert.deepEqual(
          listed.map(({ value }) => value),
          [write.value],
          write.put,
        )
      }
    })

    test('a list is in the order of the keys, a page at a time, and of those it is asked for', async () => {
      const nodes = { c: 'n2', a: 'n1', b: 'n1' }
      await keep(
        Object.entries(nodes).map(([id, node]): Write => ({ put: 'allocation', value: allocation(id, { node }) })),
      )
      const ids = async (query: Partial<Parameters<Store['list']>[1]>) =>
        (await store.list('allocation', { after: null, limit: 10, ...query })).map(({ value }) => value.id)
      assert.deepEqual(await ids({}), ['a', 'b', 'c'])
      assert.deepEqual(await ids({ after: 'a', limit: 1 }), ['b'])
      assert.deepEqual(await ids({ where: { node: 'n1' } }), ['a', 'b'])
      assert.deepEqual(await ids({ where: { node: 'n1', vcluster: 'blue' }, after: 'a' }), ['b'])
      assert.deepEqual(await ids({ where: { vcluster: 'red' } }), [])
      await assert.rejects(async () => ids({ where: { owner: 'alice' } }), /no column owner/)
    })

    test('receipts that are not settled are found without the others', async () => {
      const settled = receipt('r2', { effectiveAtMs: 1, settledAtMs: 2 })
      await keep([settled, receipt('r3')].map((value): Write => ({ put: 'receipt', value })))
      const open = await store.list('receipt', { where: { unsettled: 1 }, after: null, limit: 10 })
      assert.deepEqual(
        open.map(({ value }) => value.id),
        ['r3'],
      )
    })

    test('plans, old claims and released allocations are forgotten; what runs is not', async () => {
      const state = { kind: 'released', atMs: 0, why: 'done', by: 'operator:alice', forced: false } as const
      await keep([...fleetRows, { put: 'allocation', value: allocation('a2', { state }) }])
      assert.equal(await store.forget(releasedKeptMs + 1), 1)
      assert.equal(await store.forget(1_900_000_000_000), 2)
      const left = await store.list('allocation', { after: null, limit: 10 })
      assert.deepEqual(
        left.map(({ value }) => value.id),
        ['a1'],
      )
    })
  })
}
