import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuse, refuseMethod, type Refusal } from '#domain/core/refusal.ts'
import { ErrorBody } from './error-body.ts'
import { errorBody } from './refusal-response.ts'
import type { RefusalCode } from '#domain/core/refusal-table.ts'
import { matchesSchema } from '#platform/json-schema.ts'

test('a retry time is in whole milliseconds, as the schema says, and never shortened', () => {
  for (const [retryAfterMs, told] of [
    [59_540.8, 59_541],
    [1000, 1000],
    [null, null],
  ] as const) {
    const body = errorBody({ ...refuse('RATE_LIMITED'), retryAfterMs })
    assert.equal(body.retry_after_ms, told)
    assert.ok(matchesSchema(ErrorBody, body))
  }
})

test('what a machine that joins by hardware showed is filled in, and no token is advised to it', () => {
  const hardware = { macs: ['52:54:00:00:00:01'], bmcSerial: 'CN1' }
  const next = (code: RefusalCode, about: NonNullable<Refusal['about']>): string =>
    errorBody({ ...refuse(code), about }).next
  assert.equal(
    next('NODE_NOT_ENROLLED', { hardware }),
    'Register it: muster node enroll ID --profile hpc-diskless --mac 52:54:00:00:00:01 --bmc-serial SERIAL',
  )
  assert.match(next('NODE_NOT_ENROLLED', { hardware: { ...hardware, macs: ['$(reboot)'] } }), /--mac MAC /)
  assert.match(next('ALREADY_ACTIVE', { hardware, node: 'hpc-1' }), /muster node settle hpc-1/)
  assert.match(next('ALREADY_ACTIVE', { node: 'gpu-1' }), /muster token create --node gpu-1 --replace/)
})

test('the field at fault is named where there is one, and only then', () => {
  const fieldsOf = (refusal: Refusal) => {
    const { field, field_unknown: unknown } = errorBody(refusal)
    return [field, unknown]
  }
  const invalid = refuse('REQUEST_INVALID')
  assert.deepEqual(fieldsOf(invalid), [undefined, undefined])
  assert.deepEqual(fieldsOf({ ...invalid, field: { path: 'a.b', unknown: false } }), ['a.b', undefined])
  assert.deepEqual(fieldsOf({ ...invalid, field: { path: 'a', unknown: true } }), ['a', true])
  assert.ok(matchesSchema(ErrorBody, errorBody({ ...invalid, field: { path: 'a', unknown: true } })))
})

test('the profile that refuses a way of joining is named in the next step', () => {
  const body = errorBody(refuseMethod('hpc-diskless', 'asks for hardware'))
  assert.deepEqual(
    [body.detail, body.next],
    ['profile hpc-diskless asks for hardware', 'See which it allows: muster profile show hpc-diskless'],
  )
})
