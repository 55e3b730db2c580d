// T19: a certificate that was withdrawn is rejected before any handler sees the request, on every way in, and an open
// channel ends within a second.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { nodeCall } from '../process/node-call.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import type { Plane } from '../process/start-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { act, journalOf, makeToken, nodeOf, refusal, refusalIn, succeeded } from './ask-plane.ts'

const shared = sharedPlane()

type Withdrawal = {
  readonly how: string
  readonly code: string
  /** Takes the identity away; resolves when the plane has said that it is done. */
  readonly run: (plane: Plane, id: string) => Promise<unknown>
}

const replaced = async (plane: Plane, id: string): Promise<void> => {
  const { secret } = await makeToken(plane, { node: id, replace: true })
  succeeded(await rawNode(await plane.target()).enrollByToken(secret))
}

const withdrawals: readonly Withdrawal[] = [
  {
    how: 'revoked',
    code: 'NODE_REVOKED',
    run: (plane, id) => act(plane, id, 'revoke', { reason: 'compromised' }),
  },
  {
    how: 'quarantined',
    code: 'NODE_QUARANTINED',
    run: (plane, id) => act(plane, id, 'quarantine', { reason: 'odd traffic' }),
  },
  { how: 'superseded', code: 'CLIENT_CERT_DENIED', run: replaced },
  {
    how: 'released from quarantine',
    code: 'CLIENT_CERT_DENIED',
    run: async (plane, id) => {
      await act(plane, id, 'quarantine', { reason: 'odd traffic' })
      await act(plane, id, 'release')
    },
  },
]

for (const { how, code, run } of withdrawals) {
  test(`T19: the certificate of a ${how} node is rejected before any handler, and its channel ends within a second`, async (t) => {
    const plane = shared()
    const id = `denied-${how.replaceAll(' ', '-')}`
    const node = rawNode(await plane.target())
    succeeded(await node.enrollByToken((await makeToken(plane, { node: id })).secret))
    // One that minds nobody: its socket has to be destroyed, a close frame would not do.
    const channel = await node.openChannel({ closes: 'ignored', pings: 'ignored' })
    assert.ok('frames' in channel, JSON.stringify(channel))
    await channel.frame('hello')
    const kept = await openTlsConnection(t, node.target, node.identity())
    succeeded(await kept.call('POST', `/v1/nodes/${id}/confirm`, {}))

    const passedMs = fairStopwatch()
    await run(plane, id)
    await eventually('the channel to end', () => channel.ended(), { withinMs: 1000, everyMs: 5 })
    assert.ok(passedMs() < 2000, 'the decision and the cut')
    assert.deepEqual((await nodeOf(plane, id)).sessions, [])

    // Each of these is wrong in a way only a handler, a schema or a later check would notice.
    const attempts: readonly [what: string, path: string, body: object][] = [
      ['a correct call', `/v1/nodes/${id}/confirm`, {}],
      ['a body no schema takes', `/v1/nodes/${id}/confirm`, { admin: true }],
      ['a body that is too large', `/v1/nodes/${id}/confirm`, { detail: 'x'.repeat(70_000) }],
      ['a request that is none', `/v1/nodes/${id}/renew`, { csr: 'no' }],
      ['a good request', `/v1/nodes/${id}/renew`, { csr: node.csr }],
      ["another node's path", '/v1/nodes/somebody-else/confirm', {}],
    ]
    for (const [what, where, body] of attempts) {
      assert.deepEqual(refusal(await nodeCall(node.target, node.identity(), 'POST', where, body)), [403, code], what)
    }
    // Without the headers of an upgrade this is an ordinary call; with them it bypasses the HTTP framework.
    assert.deepEqual(refusal(await node.call('GET', `/v1/nodes/${id}/channel`)), [403, code])
    for (const name of [id, 'somebody-else']) {
      const upgrade = await openRawChannel(node.target, node.identity(), name)
      assert.ok('status' in upgrade, 'the upgrade was taken')
      assert.deepEqual(refusal(upgrade), [403, code], `upgrade as ${name}`)
    }
    // The connection that was there before is no way around it.
    assert.deepEqual(refusal(await kept.call('POST', `/v1/nodes/${id}/confirm`, {})), [403, code])

    const { actor } = await refusalIn(plane, code, { node: id })
    assert.equal(actor, `node:${id}`)
    const after = await journalOf(plane, { node: id })
    assert.equal(after.filter(({ type }) => type === 'node.renewed').length, 0)
  })
}

test('T19: the receipt of a revocation names what it withdrew and cut, and the denial survives a restart', async () => {
  const plane = shared()
  const node = rawNode(await plane.target())
  succeeded(await node.enrollByToken((await makeToken(plane, { node: 'receipt-1' })).secret))
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  const [{ issuer, serial }] = (await nodeOf(plane, 'receipt-1')).certificates
  const receipt = await act(plane, 'receipt-1', 'revoke', { reason: 'compromised' })
  assert.deepEqual([receipt.channels_cut, receipt.epoch], [1, 1])
  assert.deepEqual(receipt.certificates, [`${issuer}/${serial}`])
  // Nothing below this test uses the shared plane any more.
  await plane.kill9()
  const again = await plane.restart()
  assert.deepEqual(refusal(await node.confirm()), [403, 'NODE_REVOKED'])
  await again.stop()
})
