// The WireGuard part of an enrollment on a real store: whose key it is, which address it gets, and what is used up by a no.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Node } from '#domain/core/node.ts'
import type { WireguardPolicy } from '#domain/core/wireguard.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { verifyAs } from '#pki/signature.ts'
import { newWireguardKey } from '#pki/wireguard-key.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { createProfile } from '#plane/settings/policy-routes.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode, type EnrollParts } from '#plane/enrollment/enroll-node.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { systemRandom } from '#platform/random.ts'
import { noHolders } from '../fakes/no-holders.ts'
import { noOrders } from '../fakes/no-orders.ts'
import { change, read } from '../store/harness.ts'
import { operator, setUp } from './authority-setup.ts'

const day = 24 * 3_600_000

const setUpNetwork = async (t: TestContext, mode: WireguardPolicy['mode'], overlayPrefix: string | null = null) => {
  const { store, clock, open, openRecovery } = await setUp(t)
  const issuer = await open()
  const feed = openFeed()
  const deps: FlowCore & EnrollParts = {
    ...{ store, clock, issuer, feed, random: systemRandom, recovery: await openRecovery() },
    orders: noOrders,
    verifyProof: verifyAs,
    domainName: 'test.example',
    anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 100, perMinutePerSource: 100 })),
    admission: openAdmissionQueue(clock, 10),
    writeLimit: openWriteLimit(clock, () => 1),
    secondHolders: openSecondHolders({ store, feed, clock }, noHolders),
    copiedImages: openCopiedImages({ store, feed, clock, random: systemRandom }),
    probe: async () => ({ silentMs: 60_000 }),
  }
  const set = { 'wireguard.mode': mode }
  const made = await createProfile(deps, issuer, { name: 'meshed', from: 'gpu-cloud', set }, operator)
  assert.notEqual(made.kind, 'refused', JSON.stringify(made))
  const domain = await store.get('domain', 'domain')
  assert(domain !== null)
  await store.commit(
    change([read('domain', 'domain', domain.version)], [{ put: 'domain', value: { ...domain.value, overlayPrefix } }]),
  )

  const invite = async (node: string, replace = false) => {
    const asked = { node, profile: 'meshed', replace, ttlMs: null }
    const token = await createToken(
      deps,
      { issuer, urls: () => ({ node: 'https://localhost:1', marked: true }) },
      asked,
      operator,
    )
    assert(token.kind === 'made', JSON.stringify(token))
    return token
  }
  const enroll = (secret: string, publicKey: string | null, csr = makeCsr(generateKey('p256'), 'any')) =>
    enrollNode(deps, deps, {
      ...{
        method: 'token',
        secret,
        askedId: null,
        hardware: { macs: [], bmcSerial: null },
        facts: null,
        evidence: null,
        csr,
      },
      ...{ recovery: null, identityProof: null, source: '192.0.2.9', correlation: 'c1' },
      wireguard: publicKey === null ? null : { public_key: publicKey, underlay_endpoint: null },
    })
  /** The code, or the node. */
  const outcome = async (...call: Parameters<typeof enroll>): Promise<string | Node> => {
    const done = await enroll(...call)
    return done.kind === 'refused' ? done.code : done.node
  }
  const join = async (node: string, publicKey: string | null = newWireguardKey().publicKey): Promise<Node> => {
    const done = await outcome((await invite(node)).secret, publicKey)
    assert(typeof done !== 'string', JSON.stringify(done))
    return done
  }
  const stateOf = async (id: string): Promise<string | undefined> => (await store.tokenById(id))?.value.state.kind
  return { store, clock, invite, enroll, outcome, join, stateOf }
}

test('of two nodes that bring one key at once, one gets in and the other has lost its token', async (t) => {
  const { store, invite, outcome, stateOf } = await setUpNetwork(t, 'offered')
  const { publicKey } = newWireguardKey()
  const tokens = await Promise.all(['n1', 'n2', 'n3'].map((node) => invite(node)))
  const outcomes = await Promise.all(tokens.map(({ secret }) => outcome(secret, publicKey)))
  const codes = outcomes.map((one) => (typeof one === 'string' ? one : 'in'))
  assert.deepEqual(codes.toSorted(), ['WG_KEY_IN_USE', 'WG_KEY_IN_USE', 'in'])
  const states = await Promise.all(tokens.map(({ token }) => stateOf(token.id)))
  assert.deepEqual(states.toSorted(), ['revoked', 'revoked', 'used'])
  const winner = outcomes.find((one) => typeof one !== 'string')
  assert.equal((await store.get('wireguard-key', publicKey))?.value.node, winner?.id)
  const entries = await store.journal.read({ after: null, last: null, limit: 10, node: null, type: 'refused' })
  assert.equal(entries.length, 2)
})

test('a node has one key and one address: a new key replaces the old, which no other node may have', async (t) => {
  const { store, invite, outcome, join } = await setUpNetwork(t, 'offered')
  const [old, next] = [newWireguardKey().publicKey, newWireguardKey().publicKey]
  const before = await join('n1', old)
  const after = await join('n1', next)
  assert.deepEqual([after.wireguard?.publicKey, after.wireguard?.address], [next, before.wireguard?.address])
  assert.notEqual((await store.get('wireguard-key', old))?.value.endedAtMs, null)
  assert.equal(await outcome((await invite('n2')).secret, old), 'WG_KEY_IN_USE')
  assert.equal((await join('n1', old)).wireguard?.publicKey, old)
  // Without a key it leaves the network, and its address rests.
  assert.equal((await join('n1', null)).wireguard, null)
  const address = await store.get('overlay-address', before.wireguard?.address ?? '')
  assert.notEqual(address?.value.releasedAtMs, null)
})

test('a repeat with another WireGuard key is not the same request, and uses up nothing more', async (t) => {
  const { invite, outcome, enroll } = await setUpNetwork(t, 'offered')
  const csr = makeCsr(generateKey('p256'), 'any')
  const { secret } = await invite('n1')
  const { publicKey } = newWireguardKey()
  const [first, again] = [await enroll(secret, publicKey, csr), await enroll(secret, publicKey, csr)]
  assert(first.kind === 'issued' && again.kind === 'issued')
  assert.equal(again.certificate.der, first.certificate.der)
  // Its answer was lost with the key it had: as long as it has not come in, the token is still its own.
  const anew = await outcome(secret, newWireguardKey().publicKey, csr)
  assert(typeof anew !== 'string')
  assert.equal(anew.epoch, 2)
})

test('the profile says whether a key is ignored, taken or needed', async (t) => {
  const off = await setUpNetwork(t, 'off')
  assert.equal((await off.join('n1')).wireguard, null)
  const required = await setUpNetwork(t, 'required')
  const { secret, token } = await required.invite('n1')
  assert.equal(await required.outcome(secret, null), 'WG_KEY_REQUIRED')
  assert.equal(await required.stateOf(token.id), 'unused')
  assert.notEqual((await required.join('n1')).wireguard, null)
})

test('a network that is full says so and uses up no token; an address that was given up is free for others a day later', async (t) => {
  const { store, clock, invite, outcome, join, stateOf } = await setUpNetwork(t, 'offered', 'fd00::/126')
  const addresses = []
  for (const node of ['n1', 'n2', 'n3']) addresses.push((await join(node)).wireguard?.address)
  assert.equal(new Set(addresses).size, 3)
  const { secret, token } = await invite('n4')
  assert.equal(await outcome(secret, newWireguardKey().publicKey), 'ADDRESS_POOL_EXHAUSTED')
  assert.equal(await stateOf(token.id), 'unused')
  clock.advance(1000)
  await join('n3', null)
  assert.equal(await outcome(secret, newWireguardKey().publicKey), 'ADDRESS_POOL_EXHAUSTED')
  assert.equal((await join('n3')).wireguard?.address, addresses[2])
  await join('n3', null)
  clock.advance(day)
  assert.equal((await join('n4')).wireguard?.address, addresses[2])
  assert.equal((await store.get('overlay-address', addresses[2] ?? ''))?.value.node, 'n4')
})
