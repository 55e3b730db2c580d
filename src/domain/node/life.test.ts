// Races by name: two events decided on the same rows, committed one after the other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startLife, type Life, type LifeEvent } from '../../../test/fakes/life.ts'
import { noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'

const byHardware = { ...profileRow('hpc-diskless').value, comeback: { by: 'certificate', people: 0 } } as const
const join = (node: string, key: string): LifeEvent => ({ do: 'hardware', node, key, probe: 'silent' })

const lived = (...events: LifeEvent[]): Life => {
  const life = startLife(byHardware, noonMs)
  for (const event of events) {
    const change = life.plan(event)
    assert.ok(change !== null, event.do)
    assert.equal(life.table.commit(change), 'committed')
  }
  return life
}

/** Both are decided before either is committed. */
const race = (life: Life, first: LifeEvent, second: LifeEvent): readonly string[] =>
  [first, second]
    .map((event) => life.plan(event))
    .map((change) => {
      assert.ok(change !== null)
      return life.table.commit(change)
    })

const activeN1: readonly LifeEvent[] = [
  { do: 'register', node: 'n1' },
  { do: 'register', node: 'n2' },
  join('n1', 'k1'),
  { do: 'use', on: 0 },
]
const renewal: LifeEvent = { do: 'renew', on: 0, key: 'k2' }

test('a renewal that was decided before a revocation, quarantine or lapse is not committed after it', () => {
  for (const ending of ['revoke', 'quarantine', 'lapse', 'decommission'] as const) {
    const life = lived(...activeN1)
    assert.deepEqual(race(life, { do: ending, node: 'n1' }, renewal), ['committed', 'lost-race'])
    assert.equal(life.table.all('certificate').length, 1)
  }
})

test('a revocation that lost to a renewal takes both certificates with it when it is decided again', () => {
  const life = lived(...activeN1)
  assert.deepEqual(race(life, renewal, { do: 'revoke', node: 'n1' }), ['committed', 'lost-race'])
  const again = life.plan({ do: 'revoke', node: 'n1' })
  assert.ok(again !== null)
  assert.equal(life.table.commit(again), 'committed')
  assert.deepEqual(
    life.table
      .all('key-ban')
      .map(({ value }) => value.spki)
      .sort(),
    ['k1', 'k2'],
  )
})

test('a key banned while another node asks for a certificate with it is not certified', () => {
  const revoke: LifeEvent = { do: 'revoke', node: 'n1' }
  // Only the node's own unanswered request may bring a key that is claimed: everybody else is refused before the race.
  const unanswered = lived({ do: 'register', node: 'n1' }, join('n1', 'k1'))
  assert.deepEqual(race(unanswered, revoke, { do: 'use', on: 0 }), ['committed', 'lost-race'])
  const both = lived(...activeN1, join('n2', 'k3'), { do: 'use', on: 0 })
  assert.equal(both.plan(join('n2', 'k1')), null)
  assert.equal(both.plan({ do: 'renew', on: 0, key: 'k1' }), null)
})

test('L3: of two nodes that bring one key at the same time one is let in, and the other is refused when it asks again', () => {
  const life = lived({ do: 'register', node: 'n1' }, { do: 'register', node: 'n2' })
  assert.deepEqual(race(life, join('n1', 'k1'), join('n2', 'k1')), ['committed', 'lost-race'])
  assert.equal(life.plan(join('n2', 'k1')), null)
  assert.deepEqual(
    life.table
      .all('key-claim')
      .find(({ value }) => value.spki === 'k1')
      ?.value.holders.map(({ node }) => node),
    ['n1'],
  )
})

test('of two callers with one node, one key each, one is let in', () => {
  const life = lived({ do: 'register', node: 'n1' })
  assert.deepEqual(race(life, join('n1', 'k1'), join('n1', 'k2')), ['committed', 'lost-race'])
})

test('of two registrations of one node one wins', () => {
  const life = startLife(byHardware, noonMs)
  const register: LifeEvent = { do: 'register', node: 'n1' }
  assert.deepEqual(race(life, register, register), ['committed', 'lost-race'])
})

test('a token made before a quarantine or a revocation admits no node, also when the node has come back since', () => {
  const token = (replace: boolean): LifeEvent => ({ do: 'token', node: 'n1', replace })
  const enroll = (on: number, key: string): LifeEvent => ({ do: 'enroll', on, node: 'n1', key })
  const use: LifeEvent = { do: 'use', on: 0 }
  const endings: readonly (readonly LifeEvent[])[] = [
    [
      { do: 'quarantine', node: 'n1' },
      { do: 'release', node: 'n1' },
    ],
    [
      { do: 'revoke', node: 'n1' },
      { do: 'register', node: 'n1' },
    ],
  ]
  for (const ending of endings) {
    const life = startLife(profileRow('gpu-cloud').value, noonMs)
    const events: LifeEvent[] = [token(false), enroll(0, 'k1'), use, token(true), ...ending]
    for (const event of events) assert.equal(life.table.commit(must(life.plan(event))), 'committed')
    assert.equal(life.plan(enroll(0, 'stolen')), null)
    for (const event of [token(false), enroll(0, 'k2'), use])
      assert.equal(life.table.commit(must(life.plan(event))), 'committed')
    assert.equal(life.plan(enroll(1, 'stolen')), null)
    assert.equal(life.table.commit(must(life.plan(token(true)))), 'committed')
    assert.notEqual(life.plan(enroll(0, 'k3')), null)
  }
})

const must = <T>(value: T | null): T => {
  assert.ok(value !== null)
  return value
}
