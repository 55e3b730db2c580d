// Rows about tasks, and what overlays start, are changed by SQL behind a plane's back, on both stores: no node is sent anything because
// of it, and each raises an alert. test/flows/forged-task-rows.test.ts has every kind of row.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStatement } from '#wire/core/statement.ts'
import { someTask } from '../fakes/task-rows.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { rawWorker } from '../process/raw-worker.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tamperWith } from '../process/tamper.ts'

const diagnostics = { type: 'collect-diagnostics' }

const queued = async (plane: Plane, node: string): Promise<string> => {
  const { status, body } = await plane.api('POST', '/v1/tasks', { node, ...diagnostics })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

const columnsOf = ({ id, createdAtMs, node, type }: ReturnType<typeof someTask>) => ({
  ...{ node, type, sort_key: `${String(createdAtMs).padStart(15, '0')}/${id}`, state: 'queued', lane: 'operator' },
})

test('what was written into the database, or put back there, is sent to no node, also after a restart', async (t) => {
  const plane = await startPlane(t)
  const { sql, insert } = tamperWith(plane.data)
  const node = await activeNode(plane, 'gpu-001')
  const nowMs = Date.now()
  const forged = someTask({
    ...{
      epoch: 1,
      type: 'collect-diagnostics',
      parameters: {},
      createdAtMs: nowMs - 1000,
      expiresAtMs: nowMs + 3_600_000,
    },
  })
  await insert('task', forged.id, forged, columnsOf(forged))
  const cancelled = await queued(plane, 'gpu-001')
  const [before] = await sql(`SELECT doc, state, due, waits_for, queuer, lane FROM task WHERE key = '${cancelled}'`)
  assert.equal((await plane.api('POST', `/v1/tasks/${cancelled}/cancel`, {})).status, 200)
  await sql(
    `UPDATE task SET doc = '${before.doc}', state = 'queued', due = '${before.due}', waits_for = 'gpu-001', queuer = '${before.queuer}', lane = '${before.lane}'
      WHERE key = '${cancelled}'`,
  )
  const east = cluster()
  const issuer = {
    name: 'east',
    iss: east.iss,
    aud: east.aud,
    sub: east.sub,
    keys: { kind: 'file', document: east.jwks() },
  }
  const rights = { types: ['collect-diagnostics'], vclusters: ['blue'] }
  const made = { createdAtMs: nowMs, createdBy: 'operator:admin', removedAtMs: null }
  await insert('worker_issuer', 'east', { ...issuer, ...rights, ...made })

  await plane.stop()
  const again = await plane.restart()
  const honest = await queued(again, 'gpu-001')
  const { body } = await node.call('GET', '/v1/nodes/gpu-001/tasks/wait?wait=30')
  assert.equal(body.tasks.length, 1)
  const { tasks } = (await again.api('GET', '/v1/tasks?node=gpu-001')).body
  assert.deepEqual(
    tasks.map(({ id, state }: Json) => [id, state]).toSorted(),
    [
      [forged.id, 'cancelled'],
      [cancelled, 'cancelled'],
      [honest, 'dispatched'],
    ].toSorted(),
  )
  const refused = await rawWorker(await again.target(), east).enroll()
  assert.deepEqual([refused.status, refused.body.code], [401, 'WORKER_TOKEN_INVALID'])
  const alerted = await eventually('the alerts', async () => {
    const { alerts } = (await again.api('GET', '/v1/alerts')).body
    const subjects: string[] = alerts
      .filter(({ kind }: Json) => kind === 'rows_differ')
      .map(({ subject }: Json) => subject)
    return subjects.length >= 3 && subjects
  })
  assert.deepEqual(alerted.toSorted(), [`task ${forged.id}`, `task ${cancelled}`, 'worker-issuer east'].toSorted())
})

test('what was written into an overlay or the time sync in the database is signed for no host, also after a restart', async (t) => {
  const plane = await startPlane(t)
  const node = await activeNode(plane, 'gpu-001')
  const service = (name: string) => ({ name, command: [`/usr/sbin/${name}`, '-d'] })
  const overlay = { files: [], services: [service('exporter')], checks: [] }
  assert.equal((await plane.api('POST', '/v1/vclusters', { name: 'blue', overlay })).status, 201)
  assert.equal((await plane.api('POST', '/v1/nodes/gpu-001/assign', { to: 'blue' })).status, 200)
  const set = { 'maintenance.timeSync': service('chronyd') }
  assert.equal((await plane.api('PATCH', '/v1/domain', { set })).status, 200)
  const signed = async (): Promise<readonly string[] | undefined> => {
    const { body } = await node.call('POST', '/v1/nodes/gpu-001/overlay-statement', { nonce: 'n'.repeat(22) })
    return parseStatement('overlay', body.statement)?.value.services.map(({ name }) => name)
  }
  assert.deepEqual(await signed(), ['chronyd', 'exporter'])
  await plane.stop()
  const { edit } = tamperWith(plane.data)
  const withArgument = ({ command, ...rest }: Json) => ({ ...rest, command: [...command, '--exec=/tmp/x'] })
  await edit('vcluster', 'blue', (doc) => ({
    ...doc,
    overlay: { ...doc.overlay, services: doc.overlay.services.map(withArgument) },
  }))
  const again = await plane.restart()
  assert.deepEqual(await signed(), ['chronyd'])
  await again.stop()
  await edit('domain', 'domain', (doc) => ({
    ...doc,
    maintenance: { ...doc.maintenance, timeSync: withArgument(doc.maintenance.timeSync) },
  }))
  await again.restart()
  assert.deepEqual(await signed(), [])
})
