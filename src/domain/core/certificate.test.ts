import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  domainRow,
  hour,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  row,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'
import { isFromFuture, servesUntilMs, slotForKey } from './certificate.ts'
import { judgeToken } from '#domain/enrollment/credential.ts'
import { judgeCertificate } from '#domain/identity/presented-certificate.ts'
import { recoveriesInWindow } from '#domain/recovery/recovery.ts'
import type { Token } from '#domain/core/token.ts'

const day = 24 * hour
const toleranceMs = domainRow().value.clockToleranceMs

test('L10: clocks may differ by the tolerance, and by a minute in any case', () => {
  assert.equal(isFromFuture(noonMs + 5 * minute, noonMs, 5 * minute), false)
  assert.equal(isFromFuture(noonMs + 5 * minute + 1, noonMs, 5 * minute), true)
  assert.equal(isFromFuture(noonMs + minute, noonMs, 0), false)
  assert.equal(isFromFuture(noonMs + minute + 1, noonMs, 0), true)
})

test('L10: a certificate that begins beyond the tolerance is refused in a word that sends every agent into recovery', () => {
  const node = nodeRow('active', { epoch: 4 }).value
  const judged = (issuedAtMs: number, membership: keyof typeof memberships = 'active') => {
    const { current } = slots()
    const row = { ...current, issuedAtMs, der: '', order: 'o1', renews: null } as const
    return judgeCertificate({
      row: { ...row, subject: { kind: 'node', node: node.id, epoch: 4 }, notAfterMs: issuedAtMs + day },
      node: { ...node, membership: memberships[membership] },
      denied: false,
      keyBanned: false,
      issuerWithdrawn: false,
      source: '192.0.2.8',
      toleranceMs,
      nowMs: noonMs,
    })
  }
  assert.equal(judged(noonMs + toleranceMs).kind, 'node')
  const future = judged(noonMs + 3 * day)
  assert.ok(future.kind === 'refused' && future.fromFuture === true)
  assert.equal(future.code, 'CLIENT_CERT_DENIED')
  const revoked = judged(noonMs + 3 * day, 'revoked')
  assert.equal(revoked.kind === 'refused' && revoked.code, 'NODE_REVOKED')
})

test('L10: a token made beyond the tolerance is refused', () => {
  const token = (createdAtMs: number) =>
    row({ createdAtMs, expiresAtMs: createdAtMs + day, state: { kind: 'unused' } } as Token)
  const code = (createdAtMs: number) => {
    const judged = judgeToken(token(createdAtMs), noonMs, toleranceMs)
    return 'code' in judged ? judged.code : null
  }
  assert.equal(code(noonMs + toleranceMs), null)
  assert.equal(code(noonMs + 3 * day), 'TOKEN_INVALID')
})

test('L10: a certificate from the future answers no repeated request, and a recovery from the future costs no budget', () => {
  const pending = slot('b2', { issuedAtMs: noonMs + 3 * day, notAfterMs: noonMs + 4 * day })
  assert.equal(slotForKey(slots({ pending }), pending.spki, noonMs), null)
  const { value: profile } = profileRow('gpu-cloud')
  const { value: node } = nodeRow('active')
  const credential = { kind: 'bearer', hash: 'h', former: null, registeredAtMs: 0 } as const
  const recoveredAtMs = [noonMs - minute, noonMs + 400 * day, noonMs + 401 * day]
  const recovery = { credential, recoveredAtMs, denied: null, episode: null }
  assert.equal(recoveriesInWindow({ ...node, recovery }, profile, noonMs), 1)
})

test('a certificate serves until it expires, a replaced one until its connections are drained, others not at all', () => {
  const held = slots({
    current: slot('c', { notAfterMs: noonMs + 3 }),
    pending: slot('p', { notAfterMs: noonMs + 4 }),
    retired: { slot: slot('r', { notAfterMs: noonMs + 2 }), untilMs: noonMs + 1 },
  })
  const until = (serial: string): number | null => servesUntilMs(held, 'ca1', serial)
  assert.deepEqual([until('c'), until('p'), until('r'), until('x')], [noonMs + 3, noonMs + 4, noonMs + 1, null])
  assert.equal(servesUntilMs(held, 'another-ca', 'c'), null)
})
