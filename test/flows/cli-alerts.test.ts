// The alert commands against a real operator listener: what they print, and who may.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Alert } from '#domain/alerts/alert.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { note, read } from '../store/harness.ts'
import { setUpCli } from './cli-setup.ts'

const idOf = (at: number): string => `01JCQ7Z6W3M8X9Y0Z1A2B3${String(at).padStart(4, '0')}`

const setUp = async (t: TestContext, count: number) => {
  const plane = await setUpCli(t)
  const changes = Array.from({ length: count }, (_, at): Alert => {
    const node = `gpu-${at}`
    const sinceMs = plane.clock.nowMs() - 60_000
    const about = { kind: 'cert_expired', subject: node, node, severity: 'critical', sinceMs } as const
    return { ...about, id: idOf(at), reason: 'it ran out \u001b[2J', state: { kind: 'open' } }
  })
  await Promise.all(
    changes.map((value) =>
      plane.store.commit({
        reads: [read('alert', `cert_expired/${value.subject}`, 0)],
        writes: [{ put: 'alert', value }],
        entries: [note(value.node, 'alert.raised')],
      }),
    ),
  )
  return plane
}

test('alerts are listed for people and for programs, and text from nodes moves no cursor', async (t) => {
  const plane = await setUp(t, 2)
  const table = await plane.muster('alert', 'list')
  assert.equal(table.code, exitCodes.ok)
  assert.deepEqual(table.out.split('\n').slice(0, 2), [
    'ALERT                       SEVERITY  KIND          SUBJECT  SINCE   STATE  REASON',
    `${idOf(0)}  critical  cert_expired  gpu-0    1m ago  open   it ran out \\x1b[2J`,
  ])
  const { alerts } = JSON.parse((await plane.muster('alert', 'list', '-o', 'json')).out) as { alerts: { id: string }[] }
  assert.deepEqual(
    alerts.map(({ id }) => id),
    [idOf(0), idOf(1)],
  )
})

test('more alerts than fit on a page are all listed, once each', async (t) => {
  const plane = await setUp(t, 1205)
  const { out } = await plane.muster('alert', 'list', '-o', 'json')
  const ids = (JSON.parse(out) as { alerts: { id: string }[] }).alerts.map(({ id }) => id)
  assert.equal(new Set(ids).size, 1205)
  assert.equal(ids.length, 1205)
})

test('an acknowledgement says who and why; a second one changes nothing; a viewer may not', async (t) => {
  const plane = await setUp(t, 1)
  const asViewer = { env: { MUSTER_KEY_FILE: plane.keyFile('viewer') } }
  assert.equal((await plane.musterWith(asViewer, 'alert', 'list')).code, exitCodes.ok)
  assert.equal((await plane.musterWith(asViewer, 'alert', 'ack', idOf(0))).code, exitCodes.notAllowed)

  const asOperator = { env: { MUSTER_KEY_FILE: plane.keyFile('operator') } }
  const first = await plane.musterWith(asOperator, 'alert', 'ack', idOf(0), '--note', 'on it')
  assert.equal(first.out, `alert ${idOf(0)} acknowledged: cert_expired of gpu-0, by operator:the-operator\n`)
  const second = await plane.muster('alert', 'ack', idOf(0), '--note', 'me too')
  assert.equal(second.out, first.out)
  assert.match((await plane.muster('alert', 'list')).out, /acknowledged by operator:the-operator: on it/)
  assert.equal((await plane.journal('alert.acknowledged')).length, 1)
})

test('P1: every open alert of a kind is acknowledged with one command, over pages, with progress', async (t) => {
  const plane = await setUp(t, 1205)
  assert.equal((await plane.muster('alert', 'ack', idOf(3), '--note', 'before')).code, exitCodes.ok)
  const other = await plane.muster('alert', 'ack', '--kind', 'quarantined')
  assert.deepEqual([other.code, other.out], [exitCodes.ok, '0 alerts acknowledged: quarantined\n'])
  const all = await plane.muster('alert', 'ack', '--kind', 'cert_expired', '--note', 'power was lost')
  assert.deepEqual([all.code, all.out], [exitCodes.ok, '1204 alerts acknowledged: cert_expired\n'])
  assert.match(all.err, /500 of 1204 acknowledged\n1000 of 1204 acknowledged/)
  const { alerts } = JSON.parse((await plane.muster('alert', 'list', '-o', 'json')).out) as {
    alerts: { state: string; note: string }[]
  }
  assert.ok(alerts.every(({ state }) => state === 'acknowledged'))
  assert.equal(alerts.filter(({ note: said }) => said === 'before').length, 1)

  for (const args of [[], [idOf(1), '--kind', 'cert_expired'], ['--kind', 'no_such']]) {
    assert.equal((await plane.muster('alert', 'ack', ...args)).code, exitCodes.usage, args.join(' '))
  }
})

test('no alert of that id, and no alerts at all, are distinguished', async (t) => {
  const plane = await setUp(t, 0)
  const missing = await plane.muster('alert', 'ack', idOf(7))
  assert.deepEqual(
    [missing.code, missing.err.split('\n')[0]],
    [exitCodes.notFound, 'error ALERT_NOT_FOUND: There is no alert of that id.'],
  )
  const none = await plane.muster('alert', 'list')
  assert.deepEqual(
    [none.code, none.out, none.err],
    [exitCodes.ok, '', 'no open alerts; all: ./muster alert list --all\n'],
  )
})
