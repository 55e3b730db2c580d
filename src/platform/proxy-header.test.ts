import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parseProxyHeader } from './proxy-header.ts'

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

const header = (versionAndCommand: number, family: number, rest: Uint8Array, length = rest.length): Buffer =>
  Buffer.concat([signature, Buffer.from([versionAndCommand, family, length >> 8, length & 0xff]), rest])

const ipv4 = (source: readonly number[], more: Uint8Array = new Uint8Array()): Buffer =>
  header(0x21, 0x11, Buffer.concat([Buffer.from([...source, 10, 0, 0, 1, 0xc0, 0, 0x20, 0xfb]), more]))
const ipv6 = (source: Uint8Array): Buffer =>
  header(0x21, 0x21, Buffer.concat([source, Buffer.alloc(16, 1), Buffer.from([0xc0, 0, 0x20, 0xfb])]))

const fields = fc.uint8Array({ maxLength: 600 })

test('the caller of a TCP connection is read, whatever fields and bytes follow', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }),
      fields,
      fc.uint8Array(),
      (source, more, behind) => {
        const bytes = ipv4(source, more)
        const parsed = parseProxyHeader(Buffer.concat([bytes, behind]))
        assert.deepEqual(parsed, { kind: 'proxied', bytes: bytes.length, address: source.join('.') })
      },
    ),
  )
})

test('an IPv6 caller is spelled as a socket spells it', () => {
  const spelled = (hex: string): unknown => parseProxyHeader(ipv6(Buffer.from(hex, 'hex')))
  for (const [hex, address] of [
    ['20010db8000000000000000000000001', '2001:db8::1'],
    ['00000000000000000000000000000000', '::'],
    ['00000000000000000000ffffc0000207', '::ffff:192.0.2.7'],
    ['fe80000000000000000000000000000a', 'fe80::a'],
  ])
    assert.deepEqual(spelled(hex ?? ''), { kind: 'proxied', bytes: 52, address })
})

test('a balancer that speaks for itself is taken at its word, whatever it says of addresses', () => {
  for (const family of [0x00, 0x11, 0x21, 0x31, 0xff])
    assert.deepEqual(parseProxyHeader(header(0x20, family, Buffer.alloc(7))), { kind: 'local', bytes: 23 })
})

test('cut off anywhere, a header is incomplete, and never asks for more than there is of it', () => {
  for (const whole of [
    ipv4([192, 0, 2, 7], Buffer.alloc(40)),
    ipv6(Buffer.alloc(16, 7)),
    header(0x20, 0, Buffer.alloc(0)),
  ])
    for (let at = 0; at < whole.length; at++) {
      const parsed = parseProxyHeader(whole.subarray(0, at))
      assert.equal(parsed.kind, 'incomplete', `${at} bytes`)
      assert.ok('bytes' in parsed && parsed.bytes > at && parsed.bytes <= whole.length, `${at} bytes`)
    }
})

test('a fault in a header is reported at the first wrong byte', () => {
  const addresses = Buffer.alloc(12)
  for (const [what, bytes] of Object.entries({
    'version 1': Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 49152 8443\r\n'),
    'a TLS handshake': Buffer.from([22, 3, 1, 2, 0]),
    'one wrong byte in its signature': Buffer.from('0d0a0d0a000d0a515549540b', 'hex'),
    'version 1 in binary': header(0x11, 0x11, addresses).subarray(0, 13),
    'version 3': header(0x31, 0x11, addresses).subarray(0, 13),
    'a command nobody knows': header(0x22, 0x11, addresses),
    'a datagram': header(0x21, 0x12, addresses),
    'a Unix socket': header(0x21, 0x31, Buffer.alloc(216)),
    'no family': header(0x21, 0x00, Buffer.alloc(0)),
    'addresses cut short': header(0x21, 0x11, addresses.subarray(1)),
    'IPv6 in the space of IPv4': header(0x21, 0x21, addresses),
    'endless fields': header(0x21, 0x11, addresses, 65_535),
  }))
    assert.equal(parseProxyHeader(bytes).kind, 'invalid', what)
})

test('no bytes make it throw, and none but a header is taken for one', () => {
  const nearly = fc
    .tuple(fc.nat(255), fc.nat(255), fields)
    .map(([command, family, rest]) => header(command, family, rest))
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), nearly), (bytes) => {
      const parsed = parseProxyHeader(bytes)
      if (parsed.kind !== 'proxied' && parsed.kind !== 'local') return
      assert.ok(Buffer.from(bytes).subarray(0, 12).equals(signature))
      assert.ok(parsed.bytes <= bytes.length)
    }),
    { numRuns: 2000 },
  )
})
