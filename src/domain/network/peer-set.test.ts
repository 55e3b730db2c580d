import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberships, nodeRow, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { membershipKinds, type Node } from '#domain/core/node.ts'
import { groupOf, peerOf } from './peer-set.ts'

const wireguard = { publicKey: 'k', address: 'fd00::1', endpoint: { ipv6: '2001:db8::1', ipv4: '192.0.2.1', port: 1 } }
const node = (changes: Partial<Node> = {}): Node => nodeRow('active', { wireguard, ...changes }).value
const mesh = vclusterRow('blue', { peering: 'mesh' }).value
const isolated = vclusterRow('blue', { peering: 'isolated' }).value

test('a node that is active, or inactive with a valid identity, is a peer; no other node is', () => {
  const taking = membershipKinds.filter((kind) => groupOf(node({ membership: memberships[kind] }), null) !== null)
  assert.deepEqual(taking, ['active', 'inactive'])
  assert.equal(groupOf(node({ membership: { kind: 'inactive', sinceMs: 0, slots: null } }), null), null)
  assert.equal(groupOf(node({ wireguard: null }), null), null)
})

test('nodes of an isolated vCluster are apart, and so are those of one that is not known; all others are together', () => {
  const [free, inBlue] = [node({ assignment: null }), node({ assignment: 'blue' })]
  assert.equal(groupOf(inBlue, mesh), groupOf(free, null))
  assert.notEqual(groupOf(inBlue, isolated), groupOf(free, null))
  assert.equal(groupOf(inBlue, null), groupOf(inBlue, isolated))
})

test('a peer is reached at its IPv6 address, else at its IPv4 address, else it calls first', () => {
  const at = (endpoint: NonNullable<Node['wireguard']>['endpoint']) =>
    peerOf(node({ wireguard: { ...wireguard, endpoint } }))?.endpoint
  assert.equal(at(wireguard.endpoint), '[2001:db8::1]:1')
  assert.equal(at({ ...wireguard.endpoint, ipv6: null }), '192.0.2.1:1')
  assert.equal(at({ ipv6: null, ipv4: null, port: 1 }), null)
  assert.equal(at(null), null)
})
