import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRefusalCode, refusals } from './refusal-table.ts'

const rows = Object.entries(refusals)

test('a fault of the plane is a 503, so that whatever stands in front of the plane asks again', () => {
  for (const [code, { fault, status }] of rows) if (fault === 'plane') assert.equal(status, 503, code)
})

test('an agent asks again soon what is a fault of the plane; the other codes with a class like that have a Retry-After', () => {
  const soon = rows.filter(([, { retry }]) => retry === 'later' || retry === 'issuance-stopped')
  const notOfPlane = soon.filter(([, { fault }]) => fault !== 'plane').map(([code]) => code)
  assert.deepEqual(notOfPlane, ['RATE_LIMITED', 'UPGRADE_UNFINISHED'])
})

test('every code is refused with a client or a server error, a sentence, and what to do', () => {
  for (const [code, { status, message, next }] of rows) {
    assert.match(code, /^[A-Z][A-Z0-9_]+[A-Z]$/)
    assert.ok(status >= 400 && status <= 503, code)
    assert.match(message, /^[A-Z].*\.$/, code)
    assert.match(next, /^\S.*[^.]$/, code)
  }
})

test('a short code is distinguished from any other text', () => {
  assert.ok(rows.every(([code]) => isRefusalCode(code)))
  assert.ok(!isRefusalCode('A_NEWER_CODE') && !isRefusalCode('toString'))
})
