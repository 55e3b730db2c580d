// Random commits, several at a time, against a model of a store that fits on one screen: what the model says of each
// commit and of what is kept, the store says too.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Change } from '#domain/core/change.ts'
import { note, putNode, read } from './harness.ts'
import type { StoreUnderTest } from './contract.ts'

const ids = ['a', 'b', 'c'] as const
const macs = ['02:00:00:00:00:01', '02:00:00:00:00:02'] as const

/** `stale` shifts the version it claims to have read from the one there was when its batch began. */
type Touch = { id: string; stale: number; write: { macs: string[]; revoked: boolean } | 'remove' | null }

const touch: fc.Arbitrary<Touch> = fc.record({
  id: fc.constantFrom(...ids),
  stale: fc.constantFrom(0, 0, 0, 1, 2, -1),
  write: fc.option(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ macs: fc.subarray([...macs]), revoked: fc.boolean() }) },
      { weight: 1, arbitrary: fc.constant('remove' as const) },
    ),
  ),
})
const commit = fc.uniqueArray(touch, { selector: (each) => each.id, minLength: 1, maxLength: 3 })
const batches = fc.array(fc.array(commit, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 6 })

/** `last`: its version, also after it was removed. */
type Modelled = { version: number; last: number; macs: readonly string[]; revoked: boolean }
type Model = ReadonlyMap<string, Modelled>

const versionIn = (model: Model, id: string): number => model.get(id)?.version ?? 0
const lastIn = (model: Model, id: string): number => model.get(id)?.last ?? 0

/**
 * The whole contract of a commit: every read holds and no two living nodes share an address, or nothing happens. The
 * dead keep what they had until one of the living takes it.
 */
const applied = (model: Model, touches: readonly Touch[], before: Model): Model | 'lost-race' => {
  const next = new Map(model)
  for (const { id, stale, write } of touches) {
    const claimed = Math.max(0, versionIn(before, id) + stale)
    if (claimed !== versionIn(model, id)) return 'lost-race'
    if (write === null) continue
    if (write === 'remove') {
      if (claimed > 0) next.set(id, { version: 0, last: claimed, macs: [], revoked: true })
      continue
    }
    const { macs: wanted, revoked } = write
    const had = model.get(id)?.macs ?? []
    const version = (claimed === 0 ? lastIn(before, id) : claimed) + 1
    const kept = revoked ? wanted.filter((mac) => had.includes(mac)) : wanted
    next.set(id, { version, last: version, revoked, macs: kept })
  }
  const held = [...next.values()].filter(({ revoked }) => !revoked).flatMap((node) => node.macs)
  if (new Set(held).size !== held.length) return 'lost-race'
  for (const [id, node] of next) {
    if (node.revoked) next.set(id, { ...node, macs: node.macs.filter((mac) => !held.includes(mac)) })
  }
  return next
}

/** Each run has node ids and addresses of its own, so that one store serves them all. */
const changeOf = (run: number, touches: readonly Touch[], before: Model): Change => ({
  reads: touches.map(({ id, stale }) => ({
    ...read('node', `${run}${id}`, Math.max(0, versionIn(before, id) + stale)),
    removedAt: lastIn(before, id),
  })),
  removes: touches.flatMap(({ id, stale, write }) =>
    write === 'remove' && versionIn(before, id) + stale > 0 ? [{ row: 'node', key: `${run}${id}` }] : [],
  ),
  writes: touches.flatMap(({ id, write }) => {
    if (write === null || write === 'remove') return []
    const hardware = { macs: write.macs.map((mac) => `${run}/${mac}`), bmcSerial: null }
    const gone = { membership: { kind: 'revoked', sinceMs: 1, reason: 'gone', by: 'operator:test' } } as const
    return [putNode(`${run}${id}`, write.revoked ? { hardware, ...gone } : { hardware })]
  }),
  entries: [note(String(run))],
})

export const storeModel = (name: string, openEmpty: () => Promise<StoreUnderTest>): void => {
  test(`${name} agrees with a model on any interleaving of commits`, async () => {
    const under = await openEmpty()
    const { store } = under
    let run = 0
    let journaled = 0
    try {
      await fc.assert(
        fc.asyncProperty(batches, async (batchesOfRun) => {
          run++
          let model: Model = new Map()
          for (const batch of batchesOfRun) {
            const before = model
            const expected = batch.map((touches) => {
              const next = applied(model, touches, before)
              if (next === 'lost-race') return next
              model = next
              journaled++
              return 'committed'
            })
            const outcomes = await Promise.all(batch.map((each) => store.commit(changeOf(run, each, before))))
            const told = outcomes.map((outcome) => (outcome === 'lost-race' ? outcome : outcome.kind))
            assert.deepEqual(told, expected)
          }
          for (const id of ids)
            assert.equal((await store.get('node', `${run}${id}`))?.version ?? 0, versionIn(model, id))
          for (const mac of macs) {
            const holders = await store.nodesByHardware({ macs: [`${run}/${mac}`], bmcSerial: null })
            const expected = [...model].filter(([, node]) => node.macs.includes(mac)).map(([id]) => `${run}${id}`)
            assert.deepEqual(
              holders.map((row) => row.value.id),
              expected,
            )
          }
        }),
        { numRuns: process.env['MUSTER_LONG'] === '1' ? 2000 : 150 },
      )
      const verification = await store.journal.verify()
      assert.deepEqual([verification.kind, verification.entries], ['intact', journaled])
    } finally {
      await under.remove()
    }
  })
}
