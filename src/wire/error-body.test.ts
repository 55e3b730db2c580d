import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { refuse } from '#domain/refusal.ts'
import { errorBody } from './error-body.ts'
import { ErrorBody } from './node-api.ts'

test('a time to wait is told in whole milliseconds, as the schema says, and never shortened', () => {
  for (const [retryAfterMs, told] of [
    [59_540.8, 59_541],
    [1000, 1000],
    [null, null],
  ] as const) {
    const body = errorBody({ ...refuse('RATE_LIMITED'), retryAfterMs })
    assert.equal(body.retry_after_ms, told)
    assert.ok(Check(ErrorBody, body))
  }
})
