import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseNetwork, type Network } from '#platform/ip-address.ts'
import { mayBeCalled } from './webhook-address.ts'
import { hostOf } from './webhook-target.ts'

const listed = (...texts: string[]): Network[] => texts.map((text) => parseNetwork(text) as Network)

const isPublic = [
  '1.1.1.1',
  '8.8.8.8',
  '192.0.1.1',
  '172.15.0.1',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2a00::1',
]
const isPublicInOtherClothes = ['::ffff:8.8.8.8', '::ffff:808:808', '64:ff9b::8.8.8.8']
const isNot = [
  // IPv4: this host, private, shared, loopback, link-local and metadata, special, documentation, benchmarks, multicast
  ...[
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
  ],
  ...[
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.19.9.9',
  ],
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255', '168.63.129.16'],
  // IPv6: unspecified, loopback, IPv4 inside, NAT64 of private, tunnels, documentation, local, multicast
  ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:169.254.169.254'],
  ...['64:ff9b::10.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1', '2001::1', '2001:db8::1', '2002:7f00:1::', '3fff::1'],
  ...['fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1', '100::1', '5f00::1'],
  // Not an address at all
  ...['', 'localhost', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '1.1.1.1:443', '[::1]'],
]

test('addresses of the Internet may be called, whatever they are dressed as', () => {
  for (const address of [...isPublic, ...isPublicInOtherClothes]) assert.equal(mayBeCalled(address, []), true, address)
})

test('no address behind the plane may be called, whatever it is dressed as', () => {
  for (const address of isNot) assert.equal(mayBeCalled(address, []), false, address)
})

test('a network an operator lists may be called, and nothing beside it', () => {
  const networks = listed('10.1.2.0/24', 'fd00:1::/32', '127.0.0.1/32')
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1::9', '127.0.0.1']) {
    assert.equal(mayBeCalled(address, networks), true, address)
  }
  for (const address of ['10.1.3.3', 'fd00:2::9', '127.0.0.2', '::1', '169.254.169.254']) {
    assert.equal(mayBeCalled(address, networks), false, address)
  }
})

test('hosts in decimal, hexadecimal or octal are what they stand for before they are judged', () => {
  for (const host of [
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '[::ffff:127.0.0.1]',
    '0',
    '0xA9FEA9FE',
    '127.0.0.1.',
  ]) {
    const literal = hostOf(new URL(`https://${host}/hook`))
    assert.match(literal, /^(127\.0\.0\.1|::ffff:7f00:1|0\.0\.0\.0|169\.254\.169\.254)$/, host)
    assert.equal(mayBeCalled(literal, []), false, host)
  }
})

test('a network is written as one: whole address, length, no bits behind it', () => {
  for (const text of [
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0.1/8',
    '10.0.0.0/08',
    '::/129',
    'fd00::1/8',
    '/8',
    'x/8',
    '10.0.0.0/',
    '10.0.0.0/8 ',
  ])
    assert.equal(parseNetwork(text), null, text)
  for (const text of ['0.0.0.0/0', '10.0.0.0/8', '192.0.2.1/32', 'fd00::/8', '::1/128'])
    assert.notEqual(parseNetwork(text), null, text)
})
