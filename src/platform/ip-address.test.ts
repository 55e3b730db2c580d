import assert from 'node:assert/strict'
import { isIP, isIPv6 } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  formatIp,
  formatNetwork,
  inOneOf,
  ipNumber,
  ipv6OfNumber,
  parseIp,
  parseIpv6,
  parseNetwork,
  unmapped,
  unmappedNetwork,
} from './ip-address.ts'

test('every address survives the way to bytes and back, in the form a URL gives it', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => {
      const bytes = parseIp(address)
      assert.ok(bytes !== null, address)
      const text = formatIp(bytes)
      assert.deepEqual(parseIp(text), bytes)
      const url = new URL(`http://${address.includes(':') ? `[${address}]` : address}/`)
      assert.equal(text, url.hostname.replace(/^\[|\]$/g, ''))
    }),
    { numRuns: 2000 },
  )
})

test('what Node does not take for an address, we do not either', () => {
  const alphabet = fc.string({ unit: fc.constantFrom(...'0123456789abcf:.'), maxLength: 24 })
  fc.assert(
    fc.property(alphabet, (text) => assert.equal(parseIp(text) !== null, isIP(text) !== 0, text)),
    { numRuns: 5000 },
  )
  for (const text of [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '::1%eth0',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7:8:9',
  ]) {
    assert.equal(parseIp(text), null, text)
  }
})

test('an IPv6 address has one text, which means the same address', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      // The generator also makes addresses that end in a dotted quad, which are not taken here.
      const parsed = parseIpv6(text)
      if (parsed === null) return assert.match(text, /\./)
      const written = formatIp(parsed)
      assert.deepEqual(parseIpv6(written), parsed)
      assert.equal(written, new URL(`http://[${text}]/`).hostname.slice(1, -1))
      assert.deepEqual(ipv6OfNumber(ipNumber(parsed)), parsed)
    }),
  )
})

test('what is no IPv6 address in groups is not taken for one', () => {
  for (const text of [
    '',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    'fe80::1%eth0',
    '12345::',
    'g::',
    '1.2.3.4',
    '::ffff:1.2.3.4',
  ]) {
    assert.equal(parseIpv6(text), null, text)
  }
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => void (parseIpv6(text) !== null && assert.ok(isIPv6(text)))),
  )
  for (const text of ['1.2.3', '1.2.3.256', '01.2.3.4', '1.2.3.4.5', '']) assert.equal(parseIp(text), null, text)
  fc.assert(fc.property(fc.ipV4(), (text) => assert.deepEqual(parseIp(text)?.join('.'), text)))
})

const addressOf = (text: string): Uint8Array => {
  const address = parseIp(text)
  assert.ok(address !== null, text)
  return address
}

test('a network has no bits set behind its length, and holds what begins with it', () => {
  const network = parseNetwork('fd12:3456:789a::/64')
  assert.ok(network !== null)
  assert.equal(formatNetwork(network), 'fd12:3456:789a::/64')
  assert.ok(inOneOf([network], addressOf('fd12:3456:789a::1')))
  assert.ok(!inOneOf([network], addressOf('fd12:3456:789b::1')))
  for (const text of [
    'fd12::1/64',
    'fd12::/129',
    'fd12::',
    'fd12::/',
    '/64',
    'fd12::/064',
    '10.0.0.0/33',
    '10.0.0.1/8',
  ])
    assert.equal(parseNetwork(text), null, text)
})

test('an address is in a network of any length exactly if its first bits are the same', () => {
  fc.assert(
    fc.property(fc.ipV6(), fc.ipV6(), fc.integer({ min: 0, max: 128 }), (one, other, bits) => {
      const behind = BigInt(128 - bits)
      const first = ipNumber(addressOf(one)) >> behind
      const network = { bytes: ipv6OfNumber(first << behind), bits }
      assert.equal(inOneOf([network], addressOf(other)), ipNumber(addressOf(other)) >> behind === first)
      assert.ok(inOneOf([network], addressOf(one)))
    }),
  )
})

test('an IPv4 address in an IPv6 socket is that IPv4 address, in either spelling, and so is a network of them', () => {
  for (const text of ['::ffff:192.0.2.7', '::ffff:c000:207', '192.0.2.7'])
    assert.equal(formatIp(unmapped(addressOf(text))), '192.0.2.7', text)
  for (const text of ['::192.0.2.7', '64:ff9b::192.0.2.7', '2001:db8::1'])
    assert.deepEqual(unmapped(addressOf(text)), addressOf(text), text)
  const plain = (text: string): string =>
    formatNetwork(unmappedNetwork(parseNetwork(text) ?? { bytes: addressOf('::'), bits: 0 }))
  assert.equal(plain('::ffff:10.0.0.0/104'), '10.0.0.0/8')
  assert.equal(plain('::ffff:0:0/96'), '0.0.0.0/0')
  assert.equal(plain('::/64'), '::/64')
})
