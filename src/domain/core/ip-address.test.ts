import assert from 'node:assert/strict'
import * as net from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatIpv6, formatPrefix, isWithin, parseIpv4, parseIpv6, parsePrefix } from './ip-address.ts'

test('an IPv6 address has one text, which means the same address', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      // The generator also makes addresses that end in a dotted quad, which are not taken here.
      const parsed = parseIpv6(text)
      if (parsed === null) return assert.match(text, /\./)
      const written = formatIpv6(parsed)
      assert.equal(parseIpv6(written), parsed)
      assert.equal(written, new URL(`http://[${text}]/`).hostname.slice(1, -1))
    }),
  )
})

test('what is no address is not taken for one', () => {
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
  ]) {
    assert.equal(parseIpv6(text), null, text)
  }
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => void (parseIpv6(text) !== null && assert.ok(net.isIPv6(text)))),
  )
  for (const text of ['1.2.3', '1.2.3.256', '01.2.3.4', '1.2.3.4.5', '']) assert.equal(parseIpv4(text), null, text)
  fc.assert(fc.property(fc.ipV4(), (text) => assert.deepEqual(parseIpv4(text)?.join('.'), text)))
})

test('a prefix has no bits set behind its length, and holds what begins with it', () => {
  const prefix = parsePrefix('fd12:3456:789a::/64')
  assert.ok(prefix !== null)
  assert.equal(formatPrefix(prefix), 'fd12:3456:789a::/64')
  assert.ok(isWithin(parseIpv6('fd12:3456:789a::1') ?? 0n, prefix))
  assert.ok(!isWithin(parseIpv6('fd12:3456:789b::1') ?? 0n, prefix))
  for (const text of ['fd12::1/64', 'fd12::/129', 'fd12::', 'fd12::/', '/64'])
    assert.equal(parsePrefix(text), null, text)
})
