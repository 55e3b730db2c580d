import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatStatement, longestStatement, parseStatement, recoveryProofBytes } from './statement.ts'

const counter = { domain: 'test.example', node: 'gpu-001', epoch: 2, counter: 7 }
const sign = (bytes: Uint8Array): Uint8Array => Buffer.from(`signed ${bytes.length}`)

test('what a recovery key signs says what for, to whom, on what and over what; agents of every release sign these bytes', () => {
  const proof = {
    purpose: 'recover',
    node: 'gpu-001',
    challenge: 'challenge1.a.b',
    csrHash: 'cc',
    counter: 'n',
  } as const
  assert.equal(
    Buffer.from(recoveryProofBytes(proof)).toString(),
    'muster-recovery1\nrecover\ngpu-001\nchallenge1.a.b\ncc\nn',
  )
})

test('a statement is read as what it was made as, and as nothing else', () => {
  const text = formatStatement('counter', counter, sign)
  const parsed = parseStatement('counter', text)
  assert.deepEqual(parsed?.value, counter)
  assert.equal(Buffer.from(parsed?.signed ?? []).toString(), text.slice(0, text.lastIndexOf('.')))
  assert.equal(parseStatement('challenge', text), null)
  // The kind is part of what is signed: the same body under another name is another statement.
  const renamed = text.replace('counter1.', 'challenge1.')
  assert.equal(parseStatement('challenge', renamed), null)
})

test('what is no statement is none, however it fails to be one', () => {
  const text = formatStatement('counter', counter, sign)
  const [head = '', body = '', signature = ''] = text.split('.')
  const other = Buffer.from(JSON.stringify({ ...counter, more: 1 })).toString('base64url')
  const wrong = Buffer.from(JSON.stringify({ ...counter, counter: -1 })).toString('base64url')
  for (const bad of [
    '',
    `${head}.${body}`,
    `${head}.${body}.`,
    `${text}\n`,
    `${text}.more`,
    `${head}.${other}.${signature}`,
    `${head}.${wrong}.${signature}`,
    `${head}.e30.${signature}`,
    `${head}.!!!.${signature}`,
    `counter2.${body}.${signature}`,
    `${head}.${body}.${'a'.repeat(longestStatement)}`,
  ]) {
    assert.equal(parseStatement('counter', bad), null, bad.slice(0, 80))
  }
})
