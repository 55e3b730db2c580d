// What an operator stops at one of three planes is stopped at all of them: issuance when the call returns, and whatever a
// stolen authority has signed as soon as the others have received that.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cluster } from '../fakes/service-accounts.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import { rawNode } from '../process/raw-node.ts'
import { rawWorker } from '../process/raw-worker.ts'
import { shared } from '../process/shared-plane.ts'
import { startThreePlanes, type ThreePlanes } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const rounds = long ? 50 : 3

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

const planes = (): ThreePlanes => three?.() ?? assert.fail('there is no PostgreSQL')

test('a halt at one plane holds at the others when the call returns, round after round', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { doors, tables } = planes()
  const [first, ...others] = doors
  for (let round = 0; round < rounds; round++) {
    const invited = await Promise.all(
      others.map(async ({ target, plane }, at) => {
        const { body } = await plane.api('POST', '/v1/tokens', { node: `r${round}-${at}` })
        return { node: rawNode(target), secret: body.secret as string }
      }),
    )
    assert.equal((await first.plane.api('POST', '/v1/issuance/halt', { reason: 'audit' })).status, 200)
    const asked = await Promise.all(invited.map(({ node, secret }) => node.enrollByToken(secret)))
    assert.deepEqual(
      asked.map(({ status, body }) => [status, body.code]),
      asked.map(() => [503, 'ISSUANCE_HALTED']),
      `round ${round}`,
    )
    assert.equal((await first.plane.api('POST', '/v1/issuance/resume', {})).status, 200)
    for (const { node, secret } of invited) {
      await eventually('the other plane to go on', async () => (await node.enrollByToken(secret)).status === 200)
    }
  }
  const [enrolled] = await tables.rows("SELECT count(*)::int AS count FROM journal WHERE type = 'host.enrolled'")
  assert.equal(enrolled?.['count'], rounds * others.length)
})

test('an authority withdrawn at one plane: channels are cut and certificates refused at all, and each signs with the new one', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { doors } = planes()
  const nodes = await Promise.all(
    doors.map(async ({ plane, target }, at) => {
      const node = rawNode(target)
      const { body } = await plane.api('POST', '/v1/tokens', { node: `w-${at}` })
      assert.equal((await node.enrollByToken(body.secret)).status, 200)
      const channel = await node.openChannel()
      assert.ok('frames' in channel, JSON.stringify(channel))
      await channel.frame('hello')
      return { node, channel }
    }),
  )
  const [{ plane }] = doors
  const { authorities } = (await plane.api('GET', '/v1/ca')).body
  const stolen = authorities.find((one: { role: string; signing: boolean }) => one.role === 'issuing' && one.signing).id
  const beganMs = performance.now()
  const withdrawn = await plane.api('POST', '/v1/ca/withdraw', { issuer: stolen, reason: 'stolen' })
  assert.equal(withdrawn.status, 200, JSON.stringify(withdrawn.body))
  await Promise.all(
    nodes.map(async ({ node, channel }) => {
      const closing = await channel.frame('closing', { withinMs: 5_000 })
      assert.equal(closing.body.code, 'ISSUER_WITHDRAWN')
      assert.equal((await node.confirm()).body.code, 'CLIENT_CERT_DENIED')
    }),
  )
  t.diagnostic(`cut on three planes ${Math.round(performance.now() - beganMs)} ms after the call began`)
  const [successor] = withdrawn.body.successors
  for (const [at, door] of doors.entries()) {
    // Also before it has looked again: what it would sign with the old one loses the race.
    const { body } = await door.plane.api('POST', '/v1/tokens', { node: `after-${at}` })
    const newcomer = rawNode(door.target)
    assert.equal((await newcomer.enrollByToken(body.secret)).status, 200)
    assert.equal((await newcomer.confirm()).status, 200)
    const { signing } = (await door.plane.api('GET', '/v1/ca')).body.authorities.find(
      (one: { id: string }) => one.id === successor,
    )
    assert.equal(signing, true)
  }
})

test('a worker that enrolled at one plane is taken by all, and revoked at one it is refused by all when the call returns', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { doors } = planes()
  const [first, ...others] = doors
  const east = cluster()
  const { iss, aud, sub } = east
  const issuer = { name: 'east', iss, aud, sub, jwks: east.jwks(), types: [], vclusters: [] }
  const added = await first.plane.api('POST', '/v1/worker-issuers', issuer)
  assert.equal(added.status, 201, JSON.stringify(added.body))
  for (const { target, plane } of others) {
    const worker = rawWorker(target, east)
    // The plane that leads makes the authority, and the others hear of both.
    await eventually(
      'the plane to know the issuer and its authority',
      async () => (await worker.enroll()).status === 200,
    )
    const renewAt = (door: (typeof doors)[number]) =>
      nodeCall(door.target, worker.identity(), 'POST', `/v1/workers/${worker.id()}/renew`, {
        token: east.token({ pod: worker.pod }),
        csr: 'none',
      })
    for (const door of doors) assert.equal((await renewAt(door)).body.code, 'CSR_INVALID')
    const { status, body } = await plane.api('POST', `/v1/workers/${worker.id()}/revoke`, { reason: 'stolen' })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.receipt.replicas.length, doors.length, JSON.stringify(body.receipt))
    for (const door of doors) assert.equal((await renewAt(door)).body.code, 'WORKER_REVOKED')
  }
})
