import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import { change, putNode, read, someToken } from '../../../../test/store/harness.ts'
import { planCommit } from '#plane/store/commit/plan-commit.ts'
import { groupNeeds, lockKey } from './group-needs.ts'

const needsOf = (...changes: readonly Change[]) => groupNeeds(changes.map(planCommit), new Set())
const locksOf = (...changes: readonly Change[]) =>
  new Map(needsOf(...changes).locks.map(({ key, exclusive }) => [key, exclusive ? 'exclusive' : 'shared']))
const ban = { put: 'key-ban', value: { spki: 'k', why: 'x', atMs: 1 } } as const
const settings = { put: 'domain', value: { name: 'x' } as never } as const

test('a commit that relies on an absent row and one that inserts it take the same lock, and only one of them alone', () => {
  const cases: readonly [relying: Change, inserting: Change, exclusive: 'relying' | 'inserting'][] = [
    [change([read('key-ban', 'k', 0)], []), change([], [ban]), 'inserting'],
    [change([read('node', 'n', 0)], []), change([read('node', 'n', 0)], [putNode('n')]), 'relying'],
  ]
  for (const [relying, inserting, alone] of cases) {
    const [one, other] = [locksOf(relying), locksOf(inserting)]
    assert.deepEqual([...one.keys()], [...other.keys()])
    assert.deepEqual([...(alone === 'relying' ? one : other).values()], ['exclusive'])
    assert.deepEqual([...(alone === 'relying' ? other : one).values()], ['shared'])
  }
})

test('policy is shared by all who read it, and belongs to the one who writes it, also within a group', () => {
  const reading = change([read('domain', 'domain', 3)], [])
  const writing = change([read('domain', 'domain', 3)], [settings])
  assert.deepEqual([...locksOf(reading)], [[lockKey('domain', 'domain'), 'shared']])
  for (const group of [
    [reading, writing],
    [writing, reading],
  ])
    assert.deepEqual([...locksOf(...group)], [[lockKey('domain', 'domain'), 'exclusive']])
})

test('a row that is there needs no lock beside its own', () => {
  assert.equal(locksOf(change([read('node', 'n', 4)], [putNode('n')])).size, 0)
})

test('all groups take the same locks in the same order', () => {
  const changes = Array.from({ length: 20 }, (_, at) => change([read('key-ban', `k${at}`, 0)], []))
  const keys = (some: readonly Change[]) => needsOf(...some).locks.map(({ key }) => key)
  assert.deepEqual(keys(changes.toReversed()), keys(changes))
  assert.deepEqual(
    keys(changes),
    keys(changes).toSorted((one, other) => (one < other ? -1 : 1)),
  )
})

test('a unique value is looked for where it may be new, and not where a row was born with it', () => {
  const token = (version: number) =>
    change([read('token', 'hash-of-t', version)], [{ put: 'token', value: someToken('t') }])
  assert.deepEqual(needsOf(token(0)).uniques.get('token')?.get('id'), new Set(['t']))
  assert.equal(needsOf(token(1)).uniques.size, 0)
})
