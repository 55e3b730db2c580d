// Seed 002, compliance tests 5 and 6, and the overlay fields of 7: the WireGuard network as nodes and operators see it.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { newWireguardKey } from '#pki/wireguard-key.ts'
import { peerAgent, type PeerAgent } from '../fakes/peer-agent.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import type { Json } from '../process/operator-call.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import {
  act,
  journalOf,
  makeToken,
  type MadeToken,
  membershipOf,
  nodeOf,
  refusal,
  refusalIn,
  succeeded,
  tokenOf,
} from './ask-plane.ts'

const shared = sharedPlane()
const wireguarded = 'with-wireguard'
let profile: Promise<unknown> | null = null

const invite = async (node: string): Promise<MadeToken> => {
  const set = { 'wireguard.mode': 'offered' }
  profile ??= shared().api('POST', '/v1/profiles', { name: wireguarded, from: 'gpu-cloud', set })
  await profile
  return makeToken(shared(), { node, profile: wireguarded })
}

const fingerprintOf = (publicKey: string): string =>
  `SHA256:${createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex')}`

const partOf = (publicKey: string, ipv4: string | null = '192.0.2.10') => ({
  wireguard: { public_key: publicKey, underlay_endpoint: { ipv6: null, ipv4, port: 51_820 } },
})

type Member = { readonly node: RawNode; readonly publicKey: string; readonly answer: Json }

const join = async (id: string, publicKey = newWireguardKey().publicKey): Promise<Member> => {
  const plane = shared()
  const { secret } = await invite(id)
  const node = rawNode(await plane.target())
  const answer = succeeded(await node.enrollByToken(secret, partOf(publicKey)))
  return { node, publicKey, answer }
}

/** An agent that takes peers in and says so, over a real channel. */
const connect = async ({ node }: Member): Promise<{ agent: PeerAgent; look(): PeerAgent; destroy(): void }> => {
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  const { body } = await channel.frame('hello')
  assert.ok(body.capabilities.includes('peers'))
  const agent = peerAgent()
  let seen = 0
  channel.send('peers_have', { revision: null })
  const look = (): PeerAgent => {
    const frames = channel.frames.filter(({ type }) => type === 'peers')
    for (const frame of frames.slice(seen)) {
      const revision = agent.take(frame.body)
      if (revision !== null) channel.send('peers_applied', { revision, applied: true, detail: null })
    }
    seen = frames.length
    return agent
  }
  return { agent, look, destroy: channel.destroy }
}

test('002-5: a duplicate WireGuard key is rejected, uses up the token, and is reported for both nodes', async () => {
  const plane = shared()
  const owner = await join('wg-owner')
  const { id, secret } = await invite('wg-copy')
  const copy = rawNode(await plane.target())
  const reply = await copy.enrollByToken(secret, partOf(owner.publicKey))
  assert.deepEqual(refusal(reply), [409, 'WG_KEY_IN_USE'])
  assert.doesNotMatch(JSON.stringify(reply.body), /wg-owner/)

  const fingerprint = fingerprintOf(owner.publicKey)
  const { state, why } = await tokenOf(plane, id)
  assert.equal(state, 'revoked')
  assert.match(why, /^WG_KEY_IN_USE/)
  const listed = await plane.muster('token', 'list', '--node', 'wg-copy')
  assert.match(listed.stdout, /revoked \(WG_KEY_IN_USE\)/)
  const { body } = await refusalIn(plane, 'WG_KEY_IN_USE', { node: 'wg-copy', token: id })
  assert.partialDeepStrictEqual(body, {
    wireguard_pubkey_fingerprint: fingerprint,
    key_of: 'wg-owner',
    token_consumed: true,
  })
  const refused = (await journalOf(plane, { type: 'refused', node: 'wg-copy' })).filter(
    (entry) => entry.body.code === 'WG_KEY_IN_USE',
  )
  assert.equal(refused.length, 1)

  // Consumed: that token admits no node, neither with the same key nor with another.
  for (const publicKey of [owner.publicKey, newWireguardKey().publicKey]) {
    assert.deepEqual(refusal(await copy.enrollByToken(secret, partOf(publicKey))), [403, 'TOKEN_INVALID'])
  }
  assert.equal(await membershipOf(plane, 'wg-copy'), 'registered')
  succeeded(await owner.node.confirm())
  assert.equal((await nodeOf(plane, 'wg-owner')).wireguard.public_key, owner.publicKey)
  // With a new token and a key of its own it gets in.
  await join('wg-copy')
})

test('002-5: nothing else that is wrong with a WireGuard part consumes the token, and the same again is the same', async () => {
  const plane = shared()
  const { id, secret } = await invite('wg-table')
  const node = rawNode(await plane.target())
  const { publicKey } = newWireguardKey()
  const endpoint = (underlay: object) => ({
    wireguard: { public_key: publicKey, underlay_endpoint: { ipv6: null, ipv4: null, port: 51_820, ...underlay } },
  })
  const wrong: readonly [what: string, part: object][] = [
    ['a key of zeros', partOf(Buffer.alloc(32).toString('base64'))],
    ['a key of small order', partOf(Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]).toString('base64'))],
    ['a key that is too short', partOf('AAAA')],
    ['a loopback address', endpoint({ ipv6: '::1' })],
    ['a multicast address', endpoint({ ipv4: '224.0.0.1' })],
    ['the unspecified address', endpoint({ ipv6: '::' })],
    ['a name', endpoint({ ipv4: 'example.com' })],
    ['no port', { wireguard: { public_key: publicKey, underlay_endpoint: { ipv6: null, ipv4: null } } }],
  ]
  for (const [what, part] of wrong) {
    assert.deepEqual(refusal(await node.enrollByToken(secret, part)), [400, 'REQUEST_INVALID'], what)
    assert.equal((await tokenOf(plane, id)).state, 'unused', what)
  }
  const first = succeeded(await node.enrollByToken(secret, partOf(publicKey)))
  const again = succeeded(await node.enrollByToken(secret, partOf(publicKey)))
  assert.deepEqual(
    [again.certificate_chain, again.overlay_config.host_overlay_ipv6],
    [first.certificate_chain, first.overlay_config.host_overlay_ipv6],
  )
})

test('002-5: the key of a revoked node lets no machine in again, not even under its own name', async () => {
  const plane = shared()
  const gone = await join('wg-gone')
  await act(plane, 'wg-gone', 'revoke', { reason: 'compromised' })
  succeeded(await plane.api('POST', '/v1/nodes', { id: 'wg-gone', profile: wireguarded }))
  const { secret } = await invite('wg-gone')
  const back = await rawNode(await plane.target()).enrollByToken(secret, partOf(gone.publicKey))
  assert.deepEqual(refusal(back), [409, 'WG_KEY_IN_USE'])
  // With another key it is let in, and its address rests: others may still send there what is for the one before.
  const { answer } = await join('wg-gone')
  assert.notEqual(answer.overlay_config.host_overlay_ipv6, gone.answer.overlay_config.host_overlay_ipv6)
})

test('002-6: a revoked host is removed from peer sets within 60 seconds: here within 2', async () => {
  const plane = shared()
  const members = await Promise.all(['peer-1', 'peer-2', 'peer-3', 'peer-4'].map((id) => join(id)))
  const [first, second, third, doomed] = members
  assert.ok(first && second && third && doomed)
  const agents = await Promise.all([first, second, third].map(connect))
  succeeded(await doomed.node.confirm())
  await eventually('everybody to have it for a peer', () =>
    agents.every(({ look }) => look().peers.has(doomed.publicKey)),
  )
  const passedMs = fairStopwatch()
  await act(plane, 'peer-4', 'revoke', { reason: 'compromised' })
  await eventually(
    'nobody to have it for a peer',
    () => agents.every(({ look }) => !look().peers.has(doomed.publicKey)),
    { withinMs: 2000, everyMs: 5 },
  )
  const tookMs = passedMs()
  assert.ok(tookMs < 2000, `${tookMs} ms`)
  for (const { agent } of agents) assert.equal(agent.frames.at(-1)?.remove.length, 1)
  // Nodes that come later do not get it as a peer either.
  assert.ok(!JSON.stringify((await join('peer-5')).answer.overlay_config).includes(doomed.publicKey))
  for (const { destroy } of agents) destroy()
})

test('002-7: enrollment answers and audit events carry the overlay part', async () => {
  const { answer, publicKey } = await join('wg-audit')
  const plane = shared()
  const { overlay_config: overlay } = answer
  assert.match(overlay.host_overlay_ipv6, /^fd[0-9a-f]{2}:/)
  assert.deepEqual([overlay.listen_port, overlay.mtu, overlay.peers_complete], [51_820, 1420, true])
  assert.ok(overlay.network.startsWith('fd') && overlay.network.endsWith('::/64'))
  const [{ body }] = (await journalOf(plane, { node: 'wg-audit', type: 'host.enrolled' })) as [Json]
  assert.deepEqual(
    [body.underlay_endpoint, body.wireguard_pubkey_fingerprint],
    ['192.0.2.10:51820', fingerprintOf(publicKey)],
  )
  const shown = await plane.muster('node', 'show', 'wg-audit')
  assert.match(shown.stdout, new RegExp(`address ${overlay.host_overlay_ipv6}`))
})
