import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areTwoOperators } from './second-operator.ts'

const key = (id: string, createdBy: string, name = id) => ({ id, name, createdBy })

const first = key('root', 'system:first-start')
const [alice, bob] = [key('alice', 'operator:root'), key('bob', 'operator:root')]

const areTwo = (one: typeof first, other: typeof first, ...more: readonly (typeof first)[]): boolean => {
  const keys = [...new Set([first, alice, bob, one, other, ...more])]
  assert.equal(areTwoOperators(one, other, keys), areTwoOperators(other, one, keys), 'in either order')
  return areTwoOperators(one, other, keys)
}

test('operators whose keys somebody else has made are two', () => {
  assert.equal(areTwo(alice, bob), true)
  assert.equal(areTwo(alice, key('made-on-host', 'host:root')), true)
})

test('a key is no second operator to the one that made it, itself or by keys in between', () => {
  assert.equal(areTwo(alice, alice), false)
  assert.equal(areTwo(first, alice), false)
  const between = key('between', 'operator:alice')
  const puppet = key('puppet', 'operator:between')
  assert.equal(areTwo(alice, between), false)
  assert.equal(areTwo(alice, puppet, between), false)
  assert.equal(areTwo(bob, puppet, between), true)
})

test('a name that was used again stands for each key that had it', () => {
  const between = key('between', 'operator:alice')
  const again = key('between-2', 'operator:root', 'between')
  const puppet = key('puppet', 'operator:between')
  assert.equal(areTwo(alice, puppet, between, again), false)
  const renewed = key('alice-2', 'operator:root', 'alice')
  assert.equal(areTwo(renewed, puppet, between), false)
  assert.equal(areTwo(renewed, alice), false)
})

test('where a maker is not on record, nothing says that there are two', () => {
  assert.equal(areTwo(alice, key('puppet', 'operator:gone')), false)
})

test('keys that name each other as their makers are no endless way', () => {
  const [one, other] = [key('one', 'operator:other'), key('other', 'operator:one')]
  assert.equal(areTwo(one, other), false)
  assert.equal(areTwo(alice, one, other), true)
})
