import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { refusals } from '#domain/core/refusal-table.ts'
import { trouble } from '#agent/core/trouble.ts'
import { retryClassOf } from '#wire/core/newer-codes.ts'
import { firstRecoveryMs, nextTry, operatorCapMs, recoverySoonCapMs, type Asked } from './next-try.ts'
import type { PlaneFailure } from './plane-failure.ts'

const unit = fc.double({ min: 0, max: 0.999999, noNaN: true })
const attempt = fc.integer({ min: 0, max: 200 })
const what = trouble('CODE', 'A sentence.', 'Do something')
const both: readonly Asked[] = ['enroll', 'recover']

/** As it comes from a plane that answers with this status, or without an error body. */
const refused = (code: string, retryAfterMs: number | null = null, status = 403) => {
  const bare = /^HTTP_(\d+)$/.exec(code)
  const retry = bare === null ? retryClassOf(code, status) : retryClassOf(null, Number(bare[1]))
  return {
    ...({ kind: 'refused', code, retry, unknownField: null, keyTypes: [] } as const),
    ...{ trouble: what, retryAfterMs },
  } satisfies PlaneFailure
}

const waiting = (...asked: Parameters<typeof nextTry>) => {
  const next = nextTry(...asked)
  return next.kind === 'wait' ? next : assert.fail(`it does not wait: ${next.kind}`)
}

test('an enrollment that only an operator can repair ends the agent', () => {
  for (const code of ['TOKEN_USED', 'TOKEN_EXPIRED', 'TOKEN_INVALID', 'TOKEN_MALFORMED', 'JOIN_METHOD_NOT_ALLOWED']) {
    const next = nextTry('enroll', refused(code), 0, 0.5)
    assert.equal(next.kind === 'give-up' && next.outcome.kind, 'refused', code)
  }
})

test('a revoked node gives up', () => {
  for (const asked of both) {
    assert.deepEqual(nextTry(asked, refused('NODE_REVOKED'), 0, 0.5), {
      kind: 'give-up',
      outcome: { kind: 'revoked', trouble: what },
    })
  }
})

test('a node that has to wait for another one or for an operator goes on asking', () => {
  for (const code of ['ALREADY_ACTIVE', 'NODE_QUARANTINED', 'APPROVAL_REQUIRED', 'NODE_NOT_ENROLLED', 'A_NEWER_CODE']) {
    assert.equal(nextTry('enroll', refused(code), 0, 0.5).kind, 'wait', code)
  }
})

test('a code of a later release waits for an operator, unless the plane says that the fault is its own', () => {
  for (const status of [400, 403, 404, 409, 429]) {
    for (const asked of both) {
      const next = waiting(asked, refused('A_NEWER_CODE', null, status), 0, 0.5)
      assert.deepEqual([next.intent, next.waitMs >= 20_000], ['Asking again now and then.', true])
    }
  }
  for (const status of [500, 503]) {
    for (const asked of both) {
      const next = waiting(asked, refused('A_NEWER_CODE', null, status), 0, 0.5)
      assert.deepEqual([next.intent, next.waitMs <= 1_000, next.orEnroll], ['', true, false])
    }
  }
})

test('a server that is not the plane is not asked to enroll again by the same process', () => {
  const next = nextTry('enroll', { kind: 'untrusted', trouble: what }, 0, 0.5)
  assert.equal(next.kind === 'give-up' && next.outcome.kind, 'untrusted')
})

test('an untrusted server gets no recovery request, and is tried again within a minute', () => {
  const next = waiting('recover', { kind: 'untrusted', trouble: what }, 3, 0.5)
  assert.ok(next.waitMs >= 30_000 && next.waitMs <= 60_000)
  assert.equal(next.forget, 'nothing')
})

test('a plane without recovery is no place to recover', () => {
  assert.equal(nextTry('recover', refused('NOT_FOUND'), 0, 0.5).kind, 'elsewhere')
  assert.equal(nextTry('recover', refused('HTTP_404'), 0, 0.5).kind, 'elsewhere')
})

test('no enrollment waits longer than six minutes unless the plane asks for it, and none without end', () => {
  const codes = [...Object.keys(refusals), 'HTTP_502', 'SOMETHING_NEW']
  fc.assert(
    fc.property(fc.constantFrom(...codes), fc.nat(10_000), unit, (code, tried, jitter) => {
      const next = nextTry('enroll', refused(code), tried, jitter)
      if (next.kind === 'wait') assert.ok(next.waitMs >= 0 && next.waitMs <= 360_000)
    }),
  )
})

test('an enrollment keeps the retry time that a busy plane names', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 600_000 }), fc.nat(50), unit, (retryAfterMs, tried, jitter) => {
      assert.ok(waiting('enroll', refused('BUSY', retryAfterMs), tried, jitter).waitMs >= retryAfterMs)
    }),
  )
})

test('thousands that expire in the same moment do not ask in the same moment, and all do within five seconds', () => {
  assert.deepEqual([firstRecoveryMs(86_400_000, 0), firstRecoveryMs(86_400_000, 0.999)], [0, 4_995])
  assert.equal(firstRecoveryMs(20_000, 0.5), 1_000)
})

test('while the plane is away no recovery waits longer than a minute, and not all equally long', () => {
  fc.assert(
    fc.property(attempt, unit, (tried, jitter) => {
      const { waitMs } = waiting('recover', { kind: 'unreachable', trouble: what }, tried, jitter)
      assert.ok(waitMs >= 0 && waitMs <= recoverySoonCapMs)
    }),
  )
  assert.notEqual(
    waiting('recover', { kind: 'unreachable', trouble: what }, 9, 0.2).waitMs,
    waiting('recover', { kind: 'unreachable', trouble: what }, 9, 0.7).waitMs,
  )
})

test('a recovery that only an operator can let through is asked for slowly, but at least every five minutes', () => {
  for (const code of [
    'APPROVAL_REQUIRED',
    'RECOVERY_BUDGET_SPENT',
    'RECOVERY_DENIED',
    'NODE_QUARANTINED',
    'DUPLICATE_IDENTITY',
    'RECOVERY_UNKNOWN',
    'A_CODE_OF_A_NEWER_PLANE',
  ]) {
    fc.assert(
      fc.property(attempt, unit, fc.option(fc.integer({ min: 0, max: 3_600_000 })), (tried, jitter, retryAfterMs) => {
        const next = waiting('recover', refused(code, retryAfterMs), tried, jitter)
        assert.ok(next.waitMs >= 20_000 && next.waitMs <= operatorCapMs, `${code}: ${next.waitMs}`)
        assert.equal(next.orEnroll, true)
      }),
    )
  }
})

const forgotten = (asked: Asked) =>
  Object.keys(refusals).flatMap((code) => {
    const next = nextTry(asked, refused(code), 0, 0.5)
    return next.kind === 'wait' && next.forget !== 'nothing' ? [[code, next.forget]] : []
  })

test('only a key or a bundle that is of no use is forgotten', () => {
  assert.deepEqual(forgotten('recover'), [
    ['REPAIR_TOKEN_INVALID', 'bundle'],
    ['KEY_IN_USE', 'key'],
    ['KEY_BLOCKED', 'key'],
    ['CSR_INVALID', 'key'],
  ])
  assert.deepEqual(forgotten('enroll'), [
    ['KEY_IN_USE', 'key'],
    ['KEY_BLOCKED', 'key'],
  ])
})

test('R-050: a key of a type that is not allowed is replaced by one that is, unless this agent can make none of them', () => {
  const named = (...keyTypes: string[]) => ({ ...refused('CSR_INVALID', null, 400), keyTypes })
  for (const asked of both) assert.equal(waiting(asked, named('ml-dsa-65', 'ed25519'), 0, 0.5).forget, 'key')
  assert.equal(nextTry('enroll', named('ml-dsa-65'), 0, 0.5).kind, 'give-up')
  assert.equal(nextTry('enroll', named(), 0, 0.5).kind, 'give-up')
})
