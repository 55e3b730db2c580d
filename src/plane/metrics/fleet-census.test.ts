import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition, Node } from '#domain/core/node.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { hour, memberships, nodeRow, noonMs, row, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { openFleetCensus } from './fleet-census.ts'
import { openGroups, otherGroup, type GroupLabels } from './group-labels.ts'
import type { Store } from '#plane/store/contract/store.ts'

const setUp = (nodes: readonly Node[]) => {
  const clock = manualClock(noonMs)
  let walks = 0
  const store = {
    async nodes({ after, limit }: { after: string | null; limit: number }) {
      if (after === null) walks++
      const from = nodes.findIndex(({ id }) => after === null || id > after)
      return from === -1 ? [] : nodes.slice(from, from + limit).map((node) => row(node))
    },
    profiles: async () => shippedProfiles.map((profile) => row(profile)),
    rehearsedAtMs: async () => null,
  } as unknown as Store
  const groups = openGroups()
  const forgotten: GroupLabels[] = []
  const census = openFleetCensus({ store, clock, timers: manualTimers(clock) }, groups, (some) =>
    forgotten.push(...some),
  )
  return { clock, census, groups, forgotten, walks: () => walks }
}

const node = (id: string, changes: Partial<Node> = {}): Node => ({ ...nodeRow('active', changes).value, id })
const condition = (name: Condition['name']): Condition => ({ name, sinceMs: noonMs, reason: '', evidence: {} })
const until = (issuedAtMs: number, notAfterMs: number): Partial<Node> => ({
  membership: { ...memberships.active, slots: slots({ current: slot('a1', { issuedAtMs, notAfterMs }) }) },
})
const recovery: Node['recovery'] = {
  credential: { kind: 'key', spki: 'k', publicKey: 'k', registeredAtMs: 1 },
  recoveredAtMs: [],
  denied: null,
  episode: null,
}
const failed = (why: string): Partial<Node> => ({
  recovery,
  rehearsal: { outcome: 'failed', sinceMs: noonMs, epoch: 4, step: 'proof', why },
})

test('conditions, ends of certificates and why nodes would not come back are counted; tombstones are not', async () => {
  const { census } = setUp([
    node('a', { conditions: [condition('disk_full'), condition('clock_skew')] }),
    node('b', { conditions: [condition('disk_full')], ...until(noonMs - 23.5 * hour, noonMs + 0.5 * hour) }),
    node('c', until(noonMs - 10 * 24 * hour, noonMs + 80 * 24 * hour)),
    node('d', { recovery, rehearsal: { outcome: 'passed', sinceMs: noonMs - hour, epoch: 4 } }),
    node('e', failed('A_CODE')),
    node('f', failed('A_CODE_THAT_A_NODE_MADE_UP')),
    node('g', { recovery }),
    { ...nodeRow('revoked', { conditions: [condition('disk_full')] }).value, id: 'h' },
  ])
  const { groups, expiring, overdue, nodes, recoverable, unrecoverable } = await census()
  assert.deepEqual([nodes, recoverable, overdue], [7, 1, 1])
  const [{ conditions, firstEndMs } = assert.fail()] = groups.values()
  assert.deepEqual([conditions.disk_full, conditions.clock_skew, conditions.cert_expired], [2, 1, 0])
  assert.equal(firstEndMs, noonMs + 0.5 * hour)
  assert.deepEqual(expiring, { '1h': 1, '6h': 1, '24h': 6, '7d': 6 })
  const some = Object.entries(unrecoverable).filter(([, count]) => count > 0)
  // No word in it was chosen by a node.
  assert.deepEqual(Object.fromEntries(some), { nothing_registered: 3, never_rehearsed: 1, failed_proof: 2 })
})

test('nodes are counted by vCluster and profile, and a pair that no node is in is forgotten', async () => {
  const { census, groups, forgotten } = setUp([
    node('a', { assignment: 'training', conditions: [condition('disk_full')] }),
    node('b', { assignment: 'training', profile: 'hpc-diskless' }),
    node('c', { conditions: [condition('disk_full')] }),
  ])
  const emptied = groups.of('emptied', 'gpu-cloud')
  const counted = (await census()).groups
  assert.deepEqual(
    [...counted].map(([labels, { conditions }]) => [labels.vcluster, labels.profile, conditions.disk_full]),
    [
      ['training', node('a').profile, 1],
      ['training', 'hpc-diskless', 0],
      ['_none', node('a').profile, 1],
    ],
  )
  assert.deepEqual(forgotten, [emptied])
})

test('more pairs of vCluster and profile than there is room for are one', () => {
  const groups = openGroups(2)
  const [first, second] = [groups.of('a', 'p'), groups.of(null, 'p')]
  assert.equal(groups.of('c', 'p'), otherGroup)
  assert.equal(groups.of('a', 'p'), first)
  assert.deepEqual(groups.keepOnly(new Set([second])), [first])
  assert.deepEqual(groups.of('c', 'p'), { vcluster: 'c', profile: 'p' })
})

test('a node with a successor for its certificate is not overdue', async () => {
  const current = slot('a1', { issuedAtMs: noonMs - 24 * hour, notAfterMs: noonMs + hour })
  const pending = slot('a2', { issuedAtMs: noonMs, notAfterMs: noonMs + 24 * hour })
  const { census } = setUp([node('a', { membership: { ...memberships.active, slots: slots({ current, pending }) } })])
  assert.equal((await census()).overdue, 0)
})

test('every node is counted once, however many pages it takes, and one walk serves all who ask within half a minute', async () => {
  const nodes = Array.from({ length: 450 }, (_, at) => node(`n${String(at).padStart(4, '0')}`))
  const { census, clock, walks } = setUp(nodes)
  const [first, second] = await Promise.all([census(), census()])
  assert.equal(first.nodes, 450)
  assert.equal(first, second)
  clock.advance(29_000)
  await census()
  assert.equal(walks(), 1)
  clock.advance(1000)
  await census()
  assert.equal(walks(), 2)
})
