import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Change, type Write, entry } from '#domain/core/change.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { planCommit } from './plan-commit.ts'

const said = entry({ actor: 'system:test', source: null, correlation: null }, 1, 'domain.changed', {})
const domain: Write = { put: 'domain', value: defaultDomainSettings('test.example') }
const ban: Write = { put: 'key-ban', value: { spki: 'k', why: 'x', atMs: 1 } }
const denial: Write = {
  put: 'denial',
  value: { kind: 'epoch', node: 'n', epoch: 1, atMs: 1, untilMs: 9, why: 'x', reason: 'unspecified' },
}

const planned = (reads: Change['reads'], ...writes: Write[]) => planCommit({ reads, writes, entries: [said] }).writes

test('a write comes after the version that was read', () => {
  const [write] = planned([{ row: 'domain', key: 'domain', version: 4 }], domain)
  assert.deepEqual(write?.rule, { kind: 'after', version: 4, next: 5 })
})

test('a row that was not read cannot be written', () => {
  assert.throws(() => planned([], domain), /writes domain domain without naming the version/)
  assert.throws(() => planned([{ row: 'profile', key: 'domain', version: 1 }], domain), /without naming/)
})

test('a ban that was not read may be written twice, one that was read races like any other row', () => {
  assert.deepEqual(planned([], ban)[0]?.rule, { kind: 'keep-first' })
  assert.deepEqual(planned([{ row: 'key-ban', key: 'k', version: 0 }], ban)[0]?.rule, {
    ...{ kind: 'after', version: 0, next: 1 },
  })
})

test('a denial never becomes shorter, read or not', () => {
  assert.equal(planned([], denial)[0]?.rule.kind, 'keep-longer')
  assert.equal(planned([{ row: 'denial', key: 'epoch/1/n', version: 2 }], denial)[0]?.rule.kind, 'keep-longer')
})

test('a change cannot write one row twice', () => {
  assert.throws(() => planned([], ban, ban), /writes key-ban k twice/)
})

test('an entry that could not be encoded later is refused before it meets a group', () => {
  for (const bad of [{ atMs: NaN }, { epoch: 1.5 }, { body: { n: Infinity } }, { body: { text: 'x'.repeat(70_000) } }])
    assert.throws(() => planCommit({ reads: [], writes: [], entries: [{ ...said, ...bad }] }))
})
