import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuse } from '#domain/core/refusal.ts'
import { inKnownWords, knownCodesHeaders } from './newer-codes.ts'

const inUse = refuse('KEY_IN_USE', 'SHA256:ab')
/** What an agent of 0.2.0 sends. */
const agent = { host: 'plane', connection: 'close', accept: 'application/json', 'content-type': 'application/json' }

test('an agent that does not know a newer code is answered with one it knows, and told the newer one in the detail', () => {
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
