// Three real planes over one PostgreSQL, and a node that asks all of them at once: each task is dispatched once, whoever is asked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStatement } from '#wire/core/statement.ts'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import type { Plane } from '../process/start-plane.ts'

const count = 12
const done = {
  state: 'completed',
  code: null,
  exit_code: 0,
  detail: null,
  output: null,
  started_at: null,
  evidence: null,
}

test('three planes dispatch each of many tasks once, and one that is killed in the middle loses none', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { env } = await postgresDatabase(t)
  const planes = await startReplicaPlanes(t, 3, env)
  const [first, second, third] = planes as [Plane, Plane, Plane]
  const node = await activeNode(first, 'everywhere')
  const queued = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const body = { node: 'everywhere', type: 'collect-diagnostics', idempotency_key: `task-${at}` }
      const asked = await (planes[at % planes.length] ?? first).api('POST', '/v1/tasks', body)
      assert.equal(asked.status, 201, JSON.stringify(asked.body))
      return asked.body.id as string
    }),
  )

  /** As a node behind a load balancer: each call may reach another plane, and a plane may be gone. */
  const seen = new Map<string, Set<number>>()
  let stopped = false
  const ask = async (plane: Plane): Promise<void> => {
    const target = { ...(await plane.target()), url: plane.nodeUrl }
    const call = (method: 'GET' | 'POST', path: string, body?: object) =>
      nodeCall(target, node.identity(), method, `/v1/nodes/everywhere/tasks/${path}`, body)
    while (!stopped && plane.running()) {
      const { body } = await call('GET', 'wait?wait=1').catch(() => ({ body: {} as Json }))
      for (const { task } of body.tasks ?? []) {
        const value = parseStatement('task', task)?.value
        assert(value !== undefined)
        seen.set(value.id, (seen.get(value.id) ?? new Set<number>()).add(value.counter))
        await call('POST', `${value.id}/result`, done).catch(() => {})
      }
    }
  }
  const asking = [second, third].map(ask)
  const dying = ask(first).catch(() => {})
  await eventually('some tasks to be dispatched', () => seen.size >= 2)
  await first.kill9()
  const completed = async (): Promise<boolean> => {
    const { body } = await second.api('GET', '/v1/tasks?state=completed')
    return body.tasks.length === count
  }
  await eventually('every task to be completed', completed, { withinMs: 150_000 })
  stopped = true
  await Promise.all([...asking, dying])

  const { body } = await second.api('GET', '/v1/journal?node=everywhere&type=task.dispatched&limit=1000')
  const dispatched: string[] = body.entries.map(({ entry }: Json) => entry.body.task)
  assert.deepEqual(dispatched.toSorted(), queued.toSorted(), 'each once')
  // A task that was sent again has the counter of its one dispatch.
  assert.deepEqual(
    [...seen.values()].map((counters) => counters.size),
    [...seen.values()].map(() => 1),
  )
})
