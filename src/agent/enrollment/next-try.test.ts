import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { refusals } from '#domain/core/refusal-table.ts'
import { trouble } from '#agent/core/trouble.ts'
import { retryClassOf } from '#wire/core/newer-codes.ts'
import { nextTry } from './next-try.ts'

const unit = fc.double({ min: 0, max: 0.999999, noNaN: true })
/** As it comes from a plane that answers with this status, or without an error body. */
const refused = (code: string, retryAfterMs: number | null = null, status = 403) => {
  const bare = /^HTTP_(\d+)$/.exec(code)
  const retry = bare === null ? retryClassOf(code, status) : retryClassOf(null, Number(bare[1]))
  return {
    kind: 'refused',
    code,
    retry,
    unknownField: null,
    trouble: trouble(code, 'no', 'ask'),
    retryAfterMs,
  } as const
}

test('what cannot heal by itself ends the agent', () => {
  for (const code of ['TOKEN_USED', 'TOKEN_EXPIRED', 'TOKEN_INVALID', 'TOKEN_MALFORMED', 'JOIN_METHOD_NOT_ALLOWED']) {
    const next = nextTry(refused(code), 0, 0.5)
    assert.equal(next.kind === 'give-up' && next.outcome.kind, 'refused', code)
  }
  const revoked = nextTry(refused('NODE_REVOKED'), 0, 0.5)
  assert.equal(revoked.kind === 'give-up' && revoked.outcome.kind, 'revoked')
})

test('a node that has to wait for another one or for an operator goes on asking', () => {
  for (const code of ['ALREADY_ACTIVE', 'NODE_QUARANTINED', 'APPROVAL_REQUIRED', 'NODE_NOT_ENROLLED', 'A_NEWER_CODE']) {
    assert.equal(nextTry(refused(code), 0, 0.5).kind, 'wait', code)
  }
})

test('a code of a later release waits for an operator, unless the plane says that the fault is its own', () => {
  const intentOf = (status: number) => {
    const next = nextTry(refused('A_NEWER_CODE', null, status), 0, 0.5)
    return next.kind === 'wait' ? [next.intent, next.waitMs < 1_000] : assert.fail(next.kind)
  }
  for (const status of [400, 403, 404, 409, 429])
    assert.deepEqual(intentOf(status), ['Asking again now and then.', false])
  for (const status of [500, 503]) assert.deepEqual(intentOf(status), ['', true])
})

test('a server that is not the plane is not asked again by the same process', () => {
  const next = nextTry({ kind: 'untrusted', trouble: trouble('clock_skew', '', '') }, 0, 0.5)
  assert.equal(next.kind === 'give-up' && next.outcome.kind, 'untrusted')
})

test('a banned key is replaced', () => {
  const next = nextTry(refused('KEY_BLOCKED'), 0, 0.5)
  assert.equal(next.kind === 'wait' && next.newKey, true)
})

test('no wait is longer than six minutes unless the plane asks for it, and none is endless', () => {
  const codes = [...Object.keys(refusals), 'HTTP_502', 'SOMETHING_NEW']
  fc.assert(
    fc.property(fc.constantFrom(...codes), fc.nat(10_000), unit, (code, attempt, jitter) => {
      const next = nextTry(refused(code), attempt, jitter)
      if (next.kind === 'wait') assert.ok(next.waitMs >= 0 && next.waitMs <= 360_000)
    }),
  )
})

test('the slot a busy plane names is kept', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 600_000 }), fc.nat(50), unit, (slotMs, attempt, jitter) => {
      const next = nextTry(refused('BUSY', slotMs), attempt, jitter)
      assert.ok(next.kind === 'wait' && next.waitMs >= slotMs)
    }),
  )
})
