import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { queueRevocations } from './issuer-revocation.ts'

const nowMs = Date.UTC(2026, 5, 1)

const denied = (serial: string, issuer: string, notAfterMs = nowMs + 1000) => ({
  issuer,
  certificate: { serial, order: `order-${serial}`, notAfterMs } as CertificateRow,
})

const denial = { kind: 'epoch', reason: 'superseded' } as const

test('what is queued is journaled for each issuer with its own serials, and what has ended is not queued', () => {
  const certificates = [denied('a1', 'one'), denied('b1', 'other'), denied('a2', 'one'), denied('c1', 'one', nowMs)]
  const { change } = queueRevocations(denial, certificates, null, nowMs) ?? assert.fail()
  assert.deepEqual(
    change.entries.map(({ body }) => [body['issuer'], body['serials'], body['why']]),
    [
      ['one', ['a1', 'a2'], 'superseded'],
      ['other', ['b1'], 'superseded'],
    ],
  )
  assert.equal(change.writes.length, 3)
  assert.equal(queueRevocations(denial, [denied('c1', 'one', nowMs)], null, nowMs), null)
})
