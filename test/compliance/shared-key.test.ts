// L3, A5: nodes that got certificates over one key from a plane older than 0.2.1. The plane is made to forget its claims, and
// then certifies a key a second time, as a replica of the release before does.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { connectPostgres } from '#platform/postgres.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { databaseOf } from '../process/store-under-test.ts'
import { act, journalOf, makeToken, refusal, succeeded } from './ask-plane.ts'

const forgetClaims = async ({ data }: Plane): Promise<void> => {
  const sql = 'DELETE FROM key_claim'
  const database = databaseOf(data)
  if (database === null) {
    const file = new DatabaseSync(path.join(data, 'muster.db'), { timeout: 5000 })
    file.exec(sql)
    file.close()
    return
  }
  const connection = await connectPostgres((await database).target, {
    applicationName: 'muster test',
    connectWithinMs: 5000,
  })
  await connection.exec(sql)
  await connection.end()
}

/** A second node over the key of the first. */
const twinOf = async (plane: Plane, { key }: RawNode, id: string): Promise<RawNode> => {
  await forgetClaims(plane)
  const twin = rawNode(await plane.target())
  const { secret } = await makeToken(plane, { node: id })
  const { certificate_chain: chainPem } = succeeded(await twin.enrollByToken(secret, { csr: makeCsr(key, 'node') }))
  twin.use({ keyPem: key.pkcs8Pem(), chainPem })
  succeeded(await twin.confirm())
  return twin
}

const statusOf = async (plane: Plane, node: RawNode): Promise<string> => {
  const serial = new X509Certificate(node.identity().chainPem).serialNumber.toLowerCase().replace(/^0+/, '')
  return succeeded(await plane.api('GET', `/v1/ca/certificates/${serial}`)).status
}

const started = async (t: Scope) => {
  const plane = await startPlane(t)
  const first = await recoverableNode(plane, 'twin-a')
  return { plane, first, twin: await twinOf(plane, first.node, 'twin-b') }
}

test('L3: nodes that share a key go on working and are named in an alert, the plan names both, and a ban cuts both at once', async (t) => {
  const { plane: before, first, twin } = await started(t)
  await before.stop()
  const plane = await before.restart()
  const alert = await eventually('the alert', async () => {
    const { alerts } = (await plane.api('GET', '/v1/alerts')).body
    return alerts.find(({ kind }: { kind: string }) => kind === 'shared_key')
  })
  assert.deepEqual([alert.severity, alert.reason], ['critical', 'copied image: one private key is on twin-a, twin-b'])
  succeeded(await first.node.confirm())
  succeeded(await twin.confirm())
  assert.equal(await statusOf(plane, twin), 'good')

  const action = { kind: 'revoke-nodes', nodes: ['twin-a'], reason: 'stolen' }
  const { effects } = succeeded(await plane.api('POST', '/v1/plans', { action }))
  assert.deepEqual(
    effects.map(({ subject, loses }: { subject: string; loses: string }) => [subject, loses]),
    [
      ['node twin-a', 'at once'],
      ['node twin-b', 'at once'],
    ],
  )

  const channel = await twin.openChannel({ closes: 'ignored', pings: 'ignored' })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  const receipt = await act(plane, 'twin-a', 'revoke', { reason: 'stolen' })
  assert.equal(receipt.channels_cut, 1, 'the receipt counts the channel of the other')
  await eventually('the channel of the other to end', () => channel.ended(), { withinMs: 1000, everyMs: 5 })
  assert.deepEqual(refusal(await twin.confirm()), [403, 'CLIENT_CERT_DENIED'])
  assert.deepEqual(refusal((await twin.renew()).reply), [403, 'CLIENT_CERT_DENIED'])
  const upgrade = await twin.openChannel()
  assert.ok('status' in upgrade)
  assert.deepEqual(refusal(upgrade), [403, 'CLIENT_CERT_DENIED'])
  assert.equal(await statusOf(plane, twin), 'revoked')
  const [revoked] = await journalOf(plane, { node: 'twin-a', type: 'host.revoked' })
  assert.deepEqual(revoked?.body.also_cut, ['twin-b'])
})

test('A5: a certificate over a banned key is refused, and its channel ends, also where no claim leads from the ban to it', async (t) => {
  const { plane, twin } = await started(t)
  const channel = await twin.openChannel({ closes: 'ignored', pings: 'ignored' })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  await forgetClaims(plane)
  await act(plane, 'twin-a', 'revoke', { reason: 'stolen' })
  await eventually('the channel of the other to end', () => channel.ended(), { withinMs: 1000, everyMs: 5 })
  assert.deepEqual(refusal(await twin.confirm()), [403, 'CLIENT_CERT_DENIED'])
  // The leader finds it when it looks through the nodes, and tells those who ask for its status.
  await plane.stop()
  const again = await plane.restart()
  await eventually('its status to be revoked', async () => (await statusOf(again, twin)) === 'revoked')
})
