import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#domain/core/node.ts'
import type { NodeQuery } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { hour, nodeRow, noonMs, profileRow, row } from '../../../test/fakes/sample-rows.ts'
import { recoverabilityCounts } from './count-recoverable.ts'

const credential = { kind: 'key', spki: 's', publicKey: 'p', registeredAtMs: 0 } as const
const registered = { credential, recoveredAtMs: [], denied: null, episode: null }
const passed = (sinceMs: number) => ({ outcome: 'passed', sinceMs, epoch: 4 }) as const

const setUp = (nodes: readonly Node[], rehearsedAtMs: number | null = null) => {
  const state = { pages: 0, rehearsals: 0 }
  const clock = manualClock(noonMs)
  const store = {
    nodes: async ({ after, limit }: NodeQuery) => {
      state.pages++
      return nodes
        .filter(({ id }) => after === null || id > after)
        .slice(0, limit)
        .map((node) => row(node))
    },
    profiles: async () => [profileRow('gpu-cloud'), profileRow('hpc-diskless')],
    rehearsedAtMs: async () => {
      state.rehearsals++
      return rehearsedAtMs
    },
  }
  return { clock, state, counts: recoverabilityCounts(store, clock, manualTimers(clock)) }
}

const node = (id: string, changes: Partial<Node>): Node => nodeRow('active', { id, ...changes }).value

test('of those that have something to recover the proven share is counted, with the reasons of the rest, the commonest first', async () => {
  const { counts, state } = setUp([
    node('a', { recovery: registered, rehearsal: passed(noonMs - hour) }),
    node('b', { recovery: registered }),
    node('c', { recovery: registered }),
    node('d', {}),
    node('e', { profile: 'hpc-diskless' }),
    nodeRow('revoked', { id: 'f' }).value,
    nodeRow('registered', { id: 'g' }).value,
  ])
  const { nodes, proven, why } = await counts()
  assert.deepEqual([nodes, proven, why[0]], [4, 1, { why: 'never rehearsed', count: 2 }])
  assert.equal(
    why.reduce((sum, { count }) => sum + count, 0),
    3,
  )
  assert.equal(state.rehearsals, 0)
})

test('one that passed long ago counts as long as it has been seen rehearsing since', async () => {
  const old = [node('a', { recovery: registered, rehearsal: passed(noonMs - 100 * hour) })]
  assert.equal((await setUp(old, noonMs - hour).counts()).proven, 1)
  assert.equal((await setUp(old, noonMs - 99 * hour).counts()).proven, 0)
})

test('the registry is walked once in ten seconds, in pages, however many ask', async () => {
  const { counts, clock, state } = setUp(Array.from({ length: 500 }, (_, at) => node(`n-${1000 + at}`, {})))
  const answers = await Promise.all([counts(), counts()])
  assert.deepEqual([answers[0]?.nodes, state.pages], [500, 3])
  clock.advance(9_999)
  await counts()
  assert.equal(state.pages, 3)
  clock.advance(1)
  await counts()
  assert.equal(state.pages, 6)
})
