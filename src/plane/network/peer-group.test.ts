import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { revisionOf, withDelta, type Peer } from '#domain/network/peer-set.ts'
import { sha256 } from '#platform/bytes.ts'
import { PeerGroup, type PeerOps } from './peer-group.ts'

const peer = (node: string, key = `key-of-${node}`, endpoint: string | null = null): Peer => ({
  node,
  publicKey: key,
  endpoint,
  allowedIps: [`fd00::${node}/128`],
})

const deltaOf = (ops: PeerOps) => ({
  remove: [...ops].flatMap(([key, now]) => (now === null ? [key] : [])),
  add: [...ops.values()].flatMap((now) => (now === null ? [] : [now])),
})

const anyChange = fc.oneof(
  fc.record({ do: fc.constant('remove' as const), node: fc.integer({ min: 0, max: 5 }) }),
  fc.record({
    do: fc.constant('put' as const),
    node: fc.integer({ min: 0, max: 5 }),
    key: fc.integer({ min: 0, max: 2 }),
    endpoint: fc.option(fc.constantFrom('192.0.2.1:1', '192.0.2.2:1'), { nil: null }),
  }),
)

test('in any order of events, an agent that gets the changes has the set, and both have its revision', () => {
  const own = 'node-0'
  fc.assert(
    fc.property(fc.array(fc.tuple(anyChange, fc.boolean()), { maxLength: 60 }), (changes) => {
      const group = new PeerGroup()
      let has = new Map<string, Peer>()
      let at = 0
      for (const [change, told] of changes) {
        const node = `node-${change.node}`
        if (change.do === 'remove') group.remove(node)
        else group.put(peer(node, `key-${change.node}-${change.key}`, change.endpoint))
        if (!told) continue
        const missed = group.since(at, own)
        assert.ok(missed !== null)
        has = withDelta(has, deltaOf(missed))
        at = group.at
        assert.deepEqual(new Set(has.values()), new Set(group.others(own)))
        assert.equal(revisionOf(sha256, has.values()), group.revisionFor(own))
      }
    }),
  )
})

test('two groups with the same peers have the same revision, however they came to them', () => {
  const [a, b] = [new PeerGroup(), new PeerGroup()]
  for (const node of ['1', '2', '3']) a.put(peer(node))
  for (const node of ['9', '3', '2', '1']) b.put(peer(node))
  b.remove('9')
  assert.equal(a.revisionFor('1'), b.revisionFor('1'))
  assert.notEqual(a.revisionFor('1'), a.revisionFor('2'))
})

test('a revision of a while ago is found again, one from beyond memory is not', () => {
  const group = new PeerGroup()
  group.put(peer('1'))
  group.put(peer('2'))
  const revision = group.revisionFor('1')
  for (let count = 0; count < 1000; count++) group.put(peer('3', 'k3', `192.0.2.1:${count + 1}`))
  const at = group.positionOf('1', revision)
  assert.ok(at !== null)
  assert.deepEqual([...(group.since(at, '1')?.keys() ?? [])], ['k3'])
  for (let count = 0; count < 6000; count++) group.put(peer('3', 'k3', `192.0.2.2:${count + 1}`))
  assert.equal(group.positionOf('1', revision), null)
  assert.equal(group.since(at, '1'), null)
})

test('a key has been dropped by the peers that confirmed a set from after its removal, and by no other', () => {
  const group = new PeerGroup()
  for (const node of ['1', '2', '3', '4']) group.put(peer(node))
  const confirm = (node: string, at: number, atMs: number): void =>
    group.confirmed(node, { at, atMs, revision: group.revisionFor(node) })
  const before = group.at
  for (const node of ['1', '2', '3']) confirm(node, before, 1)
  assert.equal(group.confirmedWithout('key-of-4', '1'), null)
  group.remove('4')
  assert.equal(group.confirmedWithout('key-of-4', '1'), null)
  confirm('1', group.at, 2)
  confirm('2', before, 3)
  assert.equal(group.confirmedWithout('key-of-4', '1'), 2)
  assert.equal(group.confirmedWithout('key-of-4', '2'), null)
  group.put(peer('5'))
  confirm('1', group.at, 9)
  assert.equal(group.confirmedWithout('key-of-4', '1'), 2)
  // It came back: nobody is without it.
  group.put(peer('4'))
  assert.equal(group.confirmedWithout('key-of-4', '1'), null)
  assert.equal(group.confirmedWithout('never-there', '1'), 9)
  assert.equal(group.confirmedWithout('never-there', '4'), null)
})

test('a node that confirmed nothing since a key went has not confirmed it, however many went after that', () => {
  const group = new PeerGroup()
  const gone = Array.from({ length: 1100 }, (_, at) => `gone-${at}`)
  for (const node of ['away', 'here', ...gone]) group.put(peer(node))
  for (const node of ['away', 'here']) group.confirmed(node, { at: group.at, atMs: 1, revision: '' })
  for (const node of gone) group.remove(node)
  group.confirmed('here', { at: group.at, atMs: 2, revision: '' })
  for (const node of [gone[0], gone[500], gone.at(-1)]) {
    assert.equal(group.confirmedWithout(`key-of-${node}`, 'away'), null)
    assert.equal(group.confirmedWithout(`key-of-${node}`, 'here'), 2)
  }
})

test('of the newest removals it is known when a node first confirmed them, of older ones that it did', () => {
  const group = new PeerGroup()
  for (const node of ['here', 'first', 'second', ...Array.from({ length: 40 }, (_, at) => `more-${at}`)])
    group.put(peer(node))
  group.remove('first')
  group.confirmed('here', { at: group.at, atMs: 1, revision: '' })
  group.confirmed('here', { at: group.at, atMs: 2, revision: '' })
  assert.equal(group.confirmedWithout('key-of-first', 'here'), 1)
  group.remove('second')
  assert.equal(group.confirmedWithout('key-of-second', 'here'), null)
  for (let at = 0; at < 40; at++) group.remove(`more-${at}`)
  assert.equal(group.confirmedWithout('key-of-first', 'here'), 2)
  assert.equal(group.confirmedWithout('key-of-second', 'here'), null)
  group.confirmed('here', { at: group.at, atMs: 3, revision: '' })
  assert.equal(group.confirmedWithout('key-of-second', 'here'), 3)
})
