import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { refusals } from '#domain/core/refusal-table.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { trouble } from '#agent/core/trouble.ts'
import { retryClassOf } from '#wire/core/newer-codes.ts'
import { firstRecoveryMs, nextRecovery, operatorCapMs, soonCapMs } from './next-recovery.ts'

const what = trouble('CODE', 'A sentence.', 'Do something')
const refused = (code: string, retryAfterMs: number | null = null, status = 403) =>
  ({
    ...({ kind: 'refused', code, retry: retryClassOf(code, status) } as const),
    ...{ unknownField: null, trouble: what, retryAfterMs },
  }) as const satisfies PlaneFailure
const attempt = fc.integer({ min: 0, max: 200 })
const unit = fc.double({ min: 0, max: 0.999999, noNaN: true })

const waiting = (...asked: Parameters<typeof nextRecovery>) => {
  const next = nextRecovery(...asked)
  return next.kind === 'wait' ? next : assert.fail(`it does not wait: ${next.kind}`)
}

test('thousands that expire in the same moment do not ask in the same moment, and all do within five seconds', () => {
  assert.deepEqual([firstRecoveryMs(86_400_000, 0), firstRecoveryMs(86_400_000, 0.999)], [0, 4_995])
  assert.equal(firstRecoveryMs(20_000, 0.5), 1_000)
})

test('while the plane is away nobody waits longer than a minute, and not all equally long', () => {
  fc.assert(
    fc.property(attempt, unit, (tried, jitter) => {
      const { waitMs } = waiting({ kind: 'unreachable', trouble: what }, tried, jitter)
      assert.ok(waitMs >= 0 && waitMs <= soonCapMs)
    }),
  )
  assert.notEqual(
    waiting({ kind: 'unreachable', trouble: what }, 9, 0.2).waitMs,
    waiting({ kind: 'unreachable', trouble: what }, 9, 0.7).waitMs,
  )
})

test('what only an operator can change is asked for slowly, but at least every five minutes', () => {
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
      fc.property(attempt, unit, fc.option(fc.integer({ min: 0, max: 3_600_000 })), (tried, jitter, slotMs) => {
        const next = waiting(refused(code, slotMs), tried, jitter)
        assert.ok(next.waitMs >= 20_000 && next.waitMs <= operatorCapMs, `${code}: ${next.waitMs}`)
        assert.equal(next.orEnrol, true)
      }),
    )
  }
})

test('a server that is not trusted is told nothing and asked again within a minute', () => {
  const next = waiting({ kind: 'untrusted', trouble: what }, 3, 0.5)
  assert.ok(next.waitMs >= 30_000 && next.waitMs <= 60_000)
  assert.equal(next.forget, 'nothing')
})

test('a revoked node gives up; a plane without recovery is no place to recover', () => {
  assert.deepEqual(nextRecovery(refused('NODE_REVOKED'), 0, 0.5), {
    kind: 'give-up',
    outcome: { kind: 'revoked', trouble: what },
  })
  assert.equal(nextRecovery(refused('NOT_FOUND'), 0, 0.5).kind, 'elsewhere')
  const bare = { ...refused('HTTP_404'), retry: retryClassOf(null, 404) }
  assert.equal(nextRecovery(bare, 0, 0.5).kind, 'elsewhere')
})

test('a code of a later release with a server error is asked again within a minute', () => {
  const next = waiting(refused('A_CODE_OF_A_NEWER_PLANE', null, 503), 3, 0.5)
  assert.ok(next.waitMs <= soonCapMs && !next.orEnrol)
})

test('only a key or a bundle that is of no use is forgotten', () => {
  const forgotten = Object.keys(refusals).flatMap((code) => {
    const next = nextRecovery(refused(code), 0, 0.5)
    return next.kind === 'wait' && next.forget !== 'nothing' ? [[code, next.forget]] : []
  })
  assert.deepEqual(forgotten, [
    ['REPAIR_TOKEN_INVALID', 'bundle'],
    ['KEY_IN_USE', 'key'],
    ['KEY_BLOCKED', 'key'],
    ['CSR_INVALID', 'key'],
  ])
})
