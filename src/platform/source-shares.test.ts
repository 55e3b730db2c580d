import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSourceShares, sourceOf } from './source-shares.ts'

/** As many connections as each of these sources gets when it takes all it can, in turns. */
const takeAll = (connections: number, sources: readonly string[], most: number | null = null): number[] => {
  const shares = openSourceShares(most)
  let open = 0
  for (let round = 0; round < connections; round++)
    for (const source of sources)
      if (shares.fits(source, connections - open)) {
        shares.add(source)
        open += 1
      }
  return sources.map((source) => shares.held(source))
}

test('one source gets half of the connections, and further sources leave some free for the next', () => {
  assert.deepEqual(takeAll(128, ['a']), [64])
  for (const count of [2, 3, 10]) {
    const sources = Array.from({ length: count }, (_, number) => `s${number}`)
    const taken = takeAll(1000, sources).reduce((sum, held) => sum + held, 0)
    assert.ok(taken <= Math.ceil((1000 * count) / (count + 1)) + count, `${count} sources took ${taken}`)
  }
})

test('a fixed limit holds below the share, and what is given back can be taken again', () => {
  assert.deepEqual(takeAll(128, ['a', 'b'], 10), [10, 10])
  const shares = openSourceShares(1)
  shares.add('a')
  assert.equal(shares.fits('a', 100), false)
  shares.remove('a')
  assert.equal(shares.fits('a', 100), true)
  assert.equal(shares.held('a'), 0)
})

test('a source is an IPv4 address or an IPv6 /64, however it is written', () => {
  assert.equal(sourceOf('192.0.2.7'), '192.0.2.7')
  assert.equal(sourceOf('::ffff:192.0.2.7'), '192.0.2.7')
  assert.equal(sourceOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  assert.equal(sourceOf('2001:0db8:0001:2::9'), '2001:db8:1:2::/64')
  assert.equal(sourceOf('2001:db8::1'), '2001:db8:0:0::/64')
  assert.equal(sourceOf('fe80::1%eth0'), 'fe80:0:0:0::/64')
  assert.equal(sourceOf('::1'), '0:0:0:0::/64')
})
