import assert from 'node:assert/strict'
import { test } from 'node:test'
import { balancerNetwork, isBalancer } from './proxy-from.ts'

const listed = (from: string, address: string): boolean => {
  const networks = from.split(' ').map(balancerNetwork)
  return isBalancer(
    networks.map((network) => (typeof network === 'string' ? assert.fail(network) : network)),
    address,
  )
}

const refusalOf = (text: string): string => {
  const network = balancerNetwork(text)
  return typeof network === 'string' ? network : assert.fail(`${text} is taken`)
}

test('an address or a network matches its members and no other address', () => {
  assert.ok(listed('10.1.2.3', '10.1.2.3'))
  assert.ok(!listed('10.1.2.3', '10.1.2.4'))
  assert.ok(listed('192.0.2.9 10.1.2.0/23', '10.1.3.255'))
  assert.ok(!listed('10.1.2.0/23', '10.1.4.0'))
  assert.ok(listed('2001:db8::/32', '2001:db8:ffff::1'))
  assert.ok(!listed('2001:db8::/32', '2001:db9::1'))
  assert.ok(listed('fe80::1', 'fe80::1%eth0'))
})

test('an IPv4 address is the same on an IPv6 socket and in a list', () => {
  assert.ok(listed('10.0.0.0/8', '::ffff:10.1.2.3'))
  assert.ok(listed('::ffff:10.0.0.0/104', '10.1.2.3'))
  assert.ok(listed('::ffff:10.1.2.3', '::ffff:10.1.2.3'))
  assert.ok(!listed('::ffff:10.0.0.0/104', '11.0.0.1'))
  assert.ok(!listed('::/16', '10.1.2.3'), 'nor is one in a network of IPv6 that only looks as if it held it')
})

test('an invalid balancer address is refused, and a network of all addresses above all', () => {
  for (const text of ['', 'balancer.example', '10.1.2.3/8', '10.0.0.0/33', '10.1.2', '::/129', '10.0.0.1:80'])
    assert.match(refusalOf(text), /takes an address or a network/, text)
  for (const text of ['0.0.0.0/0', '0.0.0.0/1', '10.0.0.0/7', '::/0', '::/1', '::ffff:0.0.0.0/96'])
    assert.match(refusalOf(text), /is nearly everybody/, text)
})

test('a caller without an address is no balancer', () => {
  assert.ok(!listed('10.0.0.0/8', 'local'))
  assert.ok(!listed('10.0.0.0/8', ''))
})
