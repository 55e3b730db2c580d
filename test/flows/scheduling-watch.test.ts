// What a scheduler sees: every node once, then whatever changes, and nothing in between is lost.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Check } from 'typebox/value'
import { readOf, entry } from '#domain/core/change.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import { cursorOf } from '#plane/store/journal/journal-cursor.ts'
import { SchedulingAnswer } from '#wire/fleet/scheduling-api.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { newNode, someNode } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const setUp = async (t: TestContext, ids: readonly string[]) => {
  const plane = await setUpOperatorServer(t)
  const { store, feed } = plane
  for (const id of ids) await store.commit(newNode(id, { assignment: 'training' }))
  return {
    ...plane,
    async change(id: string, more: Partial<Node>, type: EntryType): Promise<void> {
      const row = await store.get('node', id)
      const committed = await store.commit({
        reads: [readOf('node', id, row)],
        writes: [{ put: 'node', value: { ...(row?.value ?? someNode(id)), ...more } }],
        entries: [entry(operator, startMs, type, { node: id })],
      })
      assert.ok(committed !== 'lost-race')
      feed.publish(committed)
    },
    async watch(query: Record<string, string>): Promise<{ nodes: Json[]; next: string; more: boolean }> {
      const { status, body } = await plane.call(
        'viewer',
        'GET',
        `/v1/scheduling?${new URLSearchParams(query).toString()}`,
      )
      assert.equal(status, 200, JSON.stringify(body))
      assert.ok(Check(SchedulingAnswer, body))
      return body
    },
  }
}

const names = ({ nodes }: { nodes: Json[] }): string[] => nodes.map(({ node }) => node)

test('all nodes come first, page by page, then each that changed, as it stands by then', async (t) => {
  const world = await setUp(t, ['gpu-1', 'gpu-2', 'gpu-3'])
  const first = await world.watch({ limit: '2' })
  assert.deepEqual([names(first), first.more], [['gpu-1', 'gpu-2'], true])
  // Behind what was listed and before the watch begins: told after the list.
  await world.change('gpu-1', { drain: 'draining', allocations: 3 }, 'node.draining')
  await world.change('gpu-0', { assignment: 'training' }, 'node.registered')
  const second = await world.watch({ limit: '2', after: first.next })
  assert.deepEqual([names(second), second.more], [['gpu-3'], false])

  await world.change('gpu-1', { drain: 'drained', allocations: 0 }, 'node.drained')
  const third = await world.watch({ after: second.next })
  assert.deepEqual(names(third), ['gpu-1', 'gpu-0'])
  assert.deepEqual(third.nodes[0], {
    ...{ node: 'gpu-1', membership: 'registered', vcluster: 'training', state: 'drained' },
    ...{ reasons: ['drained', 'not active: registered'], drain: 'drained', allocations: 0, sku: null },
  })
  assert.deepEqual(names(await world.watch({ after: third.next })), [])
  // What leaves scheduling as it was moves the place, and is no news.
  await world.change('gpu-2', {}, 'node.recoverable')
  const fourth = await world.watch({ after: third.next })
  assert.deepEqual(names(fourth), [])
  assert.notEqual(fourth.next, third.next)
})

test('a watch of one vCluster shows nodes that leave it, and no others', async (t) => {
  const world = await setUp(t, ['gpu-1', 'gpu-2'])
  assert.equal((await world.call('platform-admin', 'POST', '/v1/vclusters', { name: 'training' })).status, 201)
  await world.change('cpu-1', { assignment: 'batch' }, 'node.assigned')
  const list = await world.watch({ vcluster: 'training' })
  assert.deepEqual(names(list), ['gpu-1', 'gpu-2'])
  await world.change('cpu-1', { drain: 'drained' }, 'node.drained')
  await world.change('gpu-2', { assignment: 'batch' }, 'node.moved')
  const { nodes } = await world.watch({ vcluster: 'training', after: list.next })
  assert.deepEqual(
    nodes.map(({ node, vcluster }) => [node, vcluster]),
    [['gpu-2', 'batch']],
  )
})

test('a watch of a vCluster that is not there is refused, and one that has begun outlives its vCluster', async (t) => {
  const world = await setUp(t, [])
  const asked = async (query: string): Promise<unknown> => {
    const { status, body } = await world.call('viewer', 'GET', `/v1/scheduling?vcluster=training${query}`)
    return status === 200 ? body.next : body.code
  }
  assert.equal(await asked(''), 'VCLUSTER_NOT_FOUND')
  await world.call('platform-admin', 'POST', '/v1/vclusters', { name: 'training' })
  const next = await asked('')
  assert.equal((await world.call('platform-admin', 'POST', '/v1/vclusters/training/delete', {})).status, 200)
  assert.notEqual(await asked(`&after=${String(next)}`), 'VCLUSTER_NOT_FOUND')
  assert.equal(await asked(''), 'VCLUSTER_NOT_FOUND')
})

test('a watch waits for changes, and ends without any at the time given', async (t) => {
  const world = await setUp(t, ['gpu-1'])
  const { next } = await world.watch({})
  const idle = world.timers.waiting()
  const waits = async () => {
    let answered = false
    const page = world.watch({ after: next, wait_ms: '20000' }).finally(() => (answered = true))
    await eventually('the watch to wait', () => world.timers.waiting() > idle)
    return { page, answered: () => answered }
  }
  const silent = await waits()
  world.timers.advance(20_000)
  assert.deepEqual(names(await silent.page), [])
  const told = await waits()
  await world.change('gpu-1', {}, 'node.recoverable')
  assert.equal(told.answered(), false)
  await world.change('gpu-1', { drain: 'drained' }, 'node.drained')
  assert.deepEqual(names(await told.page), ['gpu-1'])
})

test('a cursor of another store is refused, and so is one behind the end of the journal', async (t) => {
  const world = await setUp(t, [])
  const [head] = await world.store.journal.heads()
  assert.ok(head !== undefined)
  const ahead = `w.${cursorOf(head.chain, head.sequence + 9)}`
  for (const after of ['w.', 'x.abcd', 'l.YWJj.', 'w.YWJj.YWJj', `w.${cursorOf('elsewhere', 1)}`, ahead]) {
    const { status, body } = await world.call('viewer', 'GET', `/v1/scheduling?after=${after}`)
    assert.deepEqual([status, body.code], [400, 'REQUEST_INVALID'])
  }
  assert.equal((await world.call(null, 'GET', '/v1/scheduling')).status, 401)
})
