// Alerts as an operator meets them: a real plane, the command line, and a receiver that is not always there.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { failsWith, startReceiver, takes } from '../process/webhook-receiver.ts'

const secret = 'the secret of this receiver'

/** An attacker uses a second token of a node that is active by now, with another key. */
const impersonated = async (plane: Plane, id: string): Promise<void> => {
  const { body } = await plane.api('POST', '/v1/tokens', { node: id })
  await activeNode(plane, id)
  const reply = await rawNode(await plane.target()).enrollByToken(body.secret)
  assert.equal(reply.body.code, 'ALREADY_ACTIVE')
}

test('an alert is raised, listed, acknowledged, delivered across a kill -9, and resolved', async (t) => {
  const receiver = await startReceiver(t, secret)
  receiver.answer = failsWith(503)
  const folder = tempFolder(t)
  const files = { secret: path.join(folder, 'secret'), ca: path.join(folder, 'ca.pem') }
  fs.writeFileSync(files.secret, `${secret}\n`, { mode: 0o600 })
  fs.writeFileSync(files.ca, receiver.root)
  const webhook = ['--alert-webhook', receiver.url, '--alert-webhook-secret-file', files.secret]
  const trust = [
    '--alert-webhook-network',
    '127.0.0.0/8',
    '--alert-webhook-network',
    '::1/128',
    '--alert-webhook-ca',
    files.ca,
  ]
  const plane = await startPlane(t, { args: [...webhook, ...trust] })

  await impersonated(plane, 'gpu-001')
  const listed = await eventually('the alert', async () => {
    const { body } = await plane.api('GET', '/v1/alerts')
    return body.alerts[0]
  })
  assert.deepEqual(
    [listed.kind, listed.severity, listed.subject, listed.state],
    ['spoof_suspected', 'critical', 'gpu-001', 'open'],
  )
  await eventually('an attempt to deliver it', () => receiver.received.length > 0)

  const table = await plane.muster('alert', 'list')
  assert.match(table.stdout, /^ALERT +SEVERITY +KIND/)
  assert.match(table.stdout, new RegExp(`${listed.id} +critical +spoof_suspected +gpu-001 .* open `))
  const acked = await plane.muster('alert', 'ack', listed.id, '--note', 'looking into it')
  assert.equal(acked.stdout, `alert ${listed.id} acknowledged: spoof_suspected of gpu-001, by operator:admin\n`)
  assert.equal((await plane.muster('alert', 'ack', '01JCQ7Z6W3M8X9Y0Z1A2B3C4D5')).code, 3)

  await plane.kill9()
  receiver.answer = takes
  const again = await plane.restart()
  // Where planes share a store, the one that was killed leads until its lease is over.
  await eventually('both to be delivered', () => receiver.taken.length === 2, { withinMs: 30_000 })
  assert.deepEqual(
    receiver.taken.map(({ body }) => [body.id, body.state]),
    [
      [listed.id, 'open'],
      [listed.id, 'acknowledged'],
    ],
  )

  // Raised once, whatever was restarted; and resolved with the node.
  assert.equal((await journalEntries(again, { type: 'alert.raised' })).length, 1)
  const revoked = await again.muster('node', 'revoke', 'gpu-001', '--reason', 'it was a thief')
  assert.equal(revoked.code, 0)
  await eventually('its end to be delivered', () => receiver.taken.length === 3)
  assert.equal(receiver.taken[2]?.body.state, 'resolved')
  assert.equal((await again.muster('alert', 'list')).stdout, '')
  const all = await again.muster('alert', 'list', '--all', '-o', 'json')
  assert.equal(JSON.parse(all.stdout).alerts[0].state, 'resolved')
  assert.equal(receiver.forged(), 0)

  const { body: metrics } = await again.api('GET', '/metrics')
  assert.match(metrics, /^muster_webhook_deliveries_total\{outcome="delivered"\} [23]$/m)
  assert.match(metrics, /^muster_alerts\{kind="spoof_suspected",severity="critical",state="open"\} 0$/m)
  const printed = [plane.stderr(), again.stderr()].join('')
  assert.ok(!printed.includes(secret))
  assert.ok(!printed.includes('a word that nobody reads'))
})

test('a webhook that could not work keeps a plane from starting, and says why', async (t) => {
  const folder = tempFolder(t)
  const readable = path.join(folder, 'readable')
  fs.writeFileSync(readable, `${secret}\n`, { mode: 0o644 })
  const short = path.join(folder, 'short')
  fs.writeFileSync(short, 'short\n', { mode: 0o600 })
  const wrong: [string[], RegExp][] = [
    [
      ['--alert-webhook', 'https://alerts.example/', '--alert-webhook-secret-file', path.join(folder, 'none')],
      /there is no file/,
    ],
    [['--alert-webhook', 'https://alerts.example/', '--alert-webhook-secret-file', readable], /others may read/],
    [['--alert-webhook', 'https://alerts.example/', '--alert-webhook-secret-file', short], /16 characters/],
    [['--alert-webhook', 'https://10.0.0.1/', '--alert-webhook-secret-file', short], /not public/],
  ]
  for (const [args, says] of wrong) {
    await assert.rejects(startPlane(t, { args }), (error: Error) => says.test(error.message), args.join(' '))
  }
})
