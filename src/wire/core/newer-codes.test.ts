import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuse } from '#domain/core/refusal.ts'
import { refusals, type RefusalCode } from '#domain/core/refusal-table.ts'
import { inKnownWords, knownCodesHeaders, retryClassOf } from './newer-codes.ts'

const inUse = refuse('KEY_IN_USE', 'SHA256:ab')
/** What an agent of 0.2.0 sends. */
const agent = { host: 'plane', connection: 'close', accept: 'application/json', 'content-type': 'application/json' }

test('an agent that does not know a newer code gets one it knows, with the newer one in the detail', () => {
  const said = inKnownWords(inUse, agent)
  assert.deepEqual([said.code, said.detail], ['KEY_BLOCKED', 'KEY_IN_USE: SHA256:ab'])
  assert.equal(inKnownWords(refuse('KEY_IN_USE'), agent).detail, 'KEY_IN_USE')
  assert.equal(inKnownWords(inUse, { ...agent, 'muster-knows-codes': 'OTHER' }).code, 'KEY_BLOCKED')
  assert.equal(inKnownWords(refuse('TOKEN_USED'), agent).code, 'TOKEN_USED')
})

test('an agent of this release and callers that are not agents get the code itself', () => {
  const curl = { host: 'plane', accept: '*/*', 'user-agent': 'curl/8' }
  for (const headers of [
    { ...agent, ...knownCodesHeaders },
    curl,
    { ...agent, 'user-agent': 'x' },
    { host: 'plane' },
  ]) {
    assert.equal(inKnownWords(inUse, headers), inUse)
  }
})

test('a code of this release has its own retry class, whatever the status', () => {
  for (const code of Object.keys(refusals) as RefusalCode[]) {
    for (const status of [400, 503, null]) assert.equal(retryClassOf(code, status), refusals[code].retry)
  }
})

test('a code of a later release is judged by the HTTP status: only a server error is asked again soon', () => {
  const classes = [400, 401, 403, 404, 405, 409, 429, null].map((status) => retryClassOf('A_NEWER_CODE', status))
  assert.deepEqual([...new Set(classes)], ['unknown'])
  for (const status of [500, 502, 503, 599]) assert.equal(retryClassOf('A_NEWER_CODE', status), 'unknown-later')
  // A name that every object has is no code.
  assert.equal(retryClassOf('constructor', 403), 'unknown')
})

test('a status without an error body distinguishes a server error and a missing address from everything else', () => {
  assert.equal(retryClassOf(null, 502), 'unknown-later')
  assert.deepEqual([retryClassOf(null, 404), retryClassOf(null, 405)], ['unknown-address', 'unknown-address'])
  assert.deepEqual([retryClassOf(null, 400), retryClassOf(null, 429)], ['unknown', 'unknown'])
})
