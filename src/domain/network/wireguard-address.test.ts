import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { formatNetwork, ipv6OfNumber, parseIpv6, parseNetwork, type Network } from '#platform/ip-address.ts'
import { addressCandidates, isFreeFor, isOfNetwork, wireguardPrefixOf } from './wireguard-address.ts'
import { addressRestMs, type WireguardAddress } from '#domain/core/wireguard.ts'

const sha256 = (text: string): Uint8Array => createHash('sha256').update(text).digest()

const prefixOf = (text: string): Network => {
  const prefix = parseNetwork(text)
  assert.ok(prefix !== null)
  return prefix
}

const settings = (name: string, overlayPrefix: string | null) => ({ ...defaultDomainSettings(name), overlayPrefix })

test('a domain has its own unique local prefix unless it is given another', () => {
  const made = wireguardPrefixOf(settings('muster.local', null), sha256)
  assert.match(formatNetwork(made), /^fd[0-9a-f]{2}:[0-9a-f:]*::\/64$/)
  assert.deepEqual(wireguardPrefixOf(settings('muster.local', null), sha256), made)
  assert.notDeepEqual(wireguardPrefixOf(settings('other.local', null), sha256), made)
  assert.deepEqual(wireguardPrefixOf(settings('muster.local', '2001:db8::/64'), sha256), prefixOf('2001:db8::/64'))
})

test('every address that is offered is in the network and not the one routers answer to, the first always the same', () => {
  const nodeId = fc.stringMatching(/^[a-z0-9]{1,20}$/)
  fc.assert(
    fc.property(nodeId, fc.integer({ min: 8, max: 127 }), (node, bits) => {
      const behind = BigInt(128 - bits)
      const prefix: Network = { bytes: ipv6OfNumber(((0xfdn << 120n) >> behind) << behind), bits }
      const offered = [...addressCandidates(prefix, node, sha256)]
      for (const address of offered) {
        assert.ok(isOfNetwork(prefix, address))
        assert.notDeepEqual(parseIpv6(address), prefix.bytes)
      }
      assert.equal(offered[0], [...addressCandidates(prefix, node, sha256)][0])
    }),
    { numRuns: 40 },
  )
})

test('a small network is looked through whole: so many nodes as it has addresses get one each, and then it is exhausted', () => {
  const prefix = prefixOf('fd00::/122')
  const held = new Map<string, string>()
  const give = (node: string): string | undefined =>
    [...addressCandidates(prefix, node, sha256)].find((address) => !held.has(address))
  for (let index = 0; index < 63; index++) {
    const address = give(`node-${index}`)
    assert.ok(address !== undefined && isOfNetwork(prefix, address))
    held.set(address, `node-${index}`)
  }
  assert.equal(give('one-more'), undefined)
})

test('in a network of ordinary size nodes hardly ever meet', () => {
  const prefix = prefixOf('fd00::/64')
  const first = Array.from({ length: 2000 }, (_, at) => addressCandidates(prefix, `gpu-${at}`, sha256).next().value)
  assert.equal(new Set(first).size, 2000)
})

test('an address that was given up rests a day before another machine gets it, also one of the same name', () => {
  const row = (releasedAtMs: number | null) => {
    const value: WireguardAddress = { address: 'fd00::1', node: 'gpu-001', sinceMs: 0, releasedAtMs }
    return { value, version: 1 }
  }
  const of = (id: string, registeredAtMs = 500) => ({ id, registeredAtMs })
  assert.equal(isFreeFor(of('gpu-002'), null, 0), true)
  assert.equal(isFreeFor(of('gpu-002'), row(null), addressRestMs * 100), false)
  assert.equal(isFreeFor(of('gpu-001'), row(null), 0), true)
  assert.equal(isFreeFor(of('gpu-002'), row(1000), 1000 + addressRestMs - 1), false)
  assert.equal(isFreeFor(of('gpu-002'), row(1000), 1000 + addressRestMs), true)
  // It left the network and comes back; or it was revoked, and another machine has its name.
  assert.equal(isFreeFor(of('gpu-001'), row(1000), 1000), true)
  assert.equal(isFreeFor(of('gpu-001', 1001), row(1000), 1002), false)
  assert.equal(isFreeFor({ id: 'gpu-001', registeredAtMs: null }, row(1000), 1002), false)
})
