import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatStatement, parseStatement } from './statement.ts'
import { longestParameters, longestTaskEnvelope, type TaskEnvelope, type Verifiers } from './task-statements.ts'

const sign = (): Uint8Array => Buffer.alloc(64, 1)
const key = 'ab'.repeat(20)
const spki = `MCowBQYDK2VwAyEA${'A'.repeat(43)}=`

const envelope: TaskEnvelope = {
  ...{ domain: 'test.example', node: 'gpu-001', epoch: 2, id: `task_${'a2'.repeat(13)}`, type: 'x-own' },
  ...{ parameters: { name: 'nginx' }, issued_ms: 1, expires_ms: 2, key, counter: 3 },
}
const verifiers: Verifiers = {
  ...{ domain: 'test.example', node: 'gpu-001', epoch: 2, number: 7, verifiers: [{ key, spki }], withdrawn: [key] },
  ...{ statement_keys: [spki], issued_ms: 1, expires_ms: 2, nonce: null },
}

test('a task and a statement of verifiers are read as they were written', () => {
  assert.deepEqual(parseStatement('task', formatStatement('task', envelope, sign))?.value, envelope)
  assert.deepEqual(parseStatement('verifiers', formatStatement('verifiers', verifiers, sign))?.value, verifiers)
  assert.equal(parseStatement('verifiers', formatStatement('task', envelope, sign)), null)
})

test('an envelope with a field too many, too few or of another shape is none', () => {
  const changes: readonly object[] = [
    { more: 1 },
    ...Object.keys(envelope).map((field) => ({ [field]: undefined })),
    ...[{ id: 'task_1' }, { id: `task_${'A'.repeat(26)}` }, { type: 'Run' }, { type: 'a'.repeat(33) }],
    ...[{ epoch: 1.5 }, { counter: -1 }, { key: 'ab' }, { node: '../up' }, { parameters: [] }, { parameters: null }],
    { parameters: { text: 'half \ud800' } },
  ]
  for (const change of changes) {
    const text = formatStatement('task', { ...envelope, ...change }, sign)
    assert.equal(parseStatement('task', text), null, JSON.stringify(change))
  }
})

test('the longest parameters fit an envelope, and a longer envelope is not read', () => {
  const of = (length: number) =>
    formatStatement('task', { ...envelope, parameters: { text: 'x'.repeat(length) } }, sign)
  assert.ok(parseStatement('task', of(longestParameters)) !== null)
  assert.equal(parseStatement('task', of(longestTaskEnvelope)), null)
})

test('a statement names at most eight signers of each kind, at least one statement key, and a nonce that cannot be guessed', () => {
  const changes: readonly object[] = [
    { verifiers: Array.from({ length: 9 }, () => ({ key, spki })) },
    { withdrawn: Array.from({ length: 9 }, () => key) },
    ...[{ statement_keys: [] }, { nonce: 'short' }, { nonce: 'with space in it.' }, { verifiers: [{ key }] }],
  ]
  for (const change of changes) {
    const text = formatStatement('verifiers', { ...verifiers, ...change }, sign)
    assert.equal(parseStatement('verifiers', text), null, JSON.stringify(change).slice(0, 60))
  }
})
