// The metrics of an agent, as Prometheus' own tool reads them over its real endpoint.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as http from 'node:http'
import { test } from 'node:test'
import { showMetrics } from '#agent/diagnostics/metrics.ts'
import { openRecord } from '#agent/diagnostics/record.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { withPeer } from './peer.ts'

const show = async (t: Scope, port = 0): Promise<number | null> => {
  const record = openRecord(systemClock, { pressure: () => false })
  record.count({ kind: 'dropped', source: 'a "quoted" source', reason: 'line\nbreak and \\', count: 1 })
  const shown = await showMetrics({
    clock: systemClock,
    timers: systemTimers,
    log: silentLog,
    record,
    keeper: { credentials: () => ({ identity: null, request: null }) },
    storage: { mounts: () => [{ mount: '/a "b"', availableBytes: 12 }] },
    config: { metricsListen: { host: '127.0.0.1', port } },
  })
  cleanup(t, () => shown.close())
  return shown.port
}

const ask = (
  port: number | null,
  path: string,
  method = 'GET',
  host = `127.0.0.1:${port}`,
): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    http
      .request({ host: '127.0.0.1', port, path, method, headers: { host } }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      })
      .on('error', reject)
      .end()
  })

test('promtool reads what an agent shows, awkward labels too', async (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const { status, body } = await ask(await show(t), '/metrics')
  assert.equal(status, 200)
  const checked = spawnSync(promtool, ['check', 'metrics'], { input: body, encoding: 'utf8' })
  assert.equal(checked.status, 0, `${checked.stderr}${checked.stdout}`)
  assert.equal(checked.stderr, '')
})

test('nothing else is shown there, and nothing is taken', async (t) => {
  const port = await show(t)
  assert.equal((await ask(port, '/')).status, 404)
  assert.equal((await ask(port, '/metrics', 'POST')).status, 405)
  assert.equal((await ask(port, '/metrics', 'HEAD')).status, 200)
})

test('it is shown under the names of this machine only, so that no name made to lead here reads it', async (t) => {
  const port = await show(t)
  for (const host of ['localhost', `localhost:${port}`, '[::1]:9464', '127.0.0.1'])
    assert.equal((await ask(port, '/metrics', 'GET', host)).status, 200, host)
  for (const host of ['rebound.example', `rebound.example:${port}`, 'localhost.rebound.example', '127.0.0.1.example'])
    assert.equal((await ask(port, '/metrics', 'GET', host)).status, 421, host)
})

test('a port that is taken does not keep the agent from running', async (t) => {
  assert.equal(await show(t, (await show(t)) ?? 0), null)
})
