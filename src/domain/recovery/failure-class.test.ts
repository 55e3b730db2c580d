import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { failureClasses, type FailureClass } from '#domain/core/node.ts'
import { classify, type Observed } from './failure-class.ts'
import { isRefusalCode, refusals, type RetryClass } from '#domain/core/refusal-table.ts'

const nowMs = Date.UTC(2026, 5, 1)
const hour = 3_600_000
const url = 'https://plane.example.test:8443'
const silent = { kind: 'no-answer', url, address: '192.0.2.7', lastGoodTried: 0 } as const
const dates = { kind: 'server-dates', url, for: 'runtime', nowMs, validity: null, stated: false } as const
const refused = (code: string, at: 'runtime' | 'recovery' = 'runtime', unknown: RetryClass = 'unknown'): Observed => ({
  kind: 'refused',
  code,
  retry: isRefusalCode(code) ? refusals[code].retry : unknown,
  at,
  certificate: null,
})
const shown = (notAfterMs: number): Observed => ({
  kind: 'refused',
  code: 'CLIENT_CERT_EXPIRED',
  retry: 'certificate-expired',
  at: 'runtime',
  certificate: { notAfterMs, nowMs },
})
const own = (notAfterMs: number): Observed => ({ kind: 'own-certificate', serial: '0a', notAfterMs, nowMs })
const written = (errno: string): Observed => ({ kind: 'write-failed', errno, path: '/var/lib/muster-agent' })
const untrusted: Observed = { kind: 'server-untrusted', code: 'SELF_SIGNED_CERT_IN_CHAIN', url, for: 'runtime' }
const damaged: Observed = {
  kind: 'damaged-credentials',
  part: 'current',
  fault: 'its private key cannot be read',
  serial: '0a',
}
const skew: Observed = { kind: 'skew', skewMs: -10 * 365 * 24 * hour, toleranceMs: 300_000 }
const lostName: Observed = { kind: 'lost-name', name: 'plane.example.test', code: 'ENOTFOUND', address: '192.0.2.7' }

const table: readonly (readonly [string, Observed, FailureClass])[] = [
  ['a port where nobody listens', { ...silent, code: 'ECONNREFUSED' }, 'endpoint_unreachable'],
  ['a network without a route', { ...silent, code: 'EHOSTUNREACH' }, 'endpoint_unreachable'],
  [
    'a name that is gone, with last good addresses that do not answer either',
    { ...silent, code: 'ENOTFOUND', address: null, lastGoodTried: 2 },
    'endpoint_unreachable',
  ],
  ['a plane that is busy', refused('BUSY'), 'endpoint_unreachable'],
  ['a proxy without a plane behind it', refused('HTTP_502', 'runtime', 'unknown-later'), 'endpoint_unreachable'],
  ['a plane whose own disk is full', refused('DISK_TROUBLE'), 'endpoint_unreachable'],
  ['a name that is gone while its last good address answers', lostName, 'endpoint_profile_drift'],
  ['an address of ours without what should be there', refused('NOT_FOUND'), 'endpoint_profile_drift'],
  ['a server under another root', untrusted, 'server_tls_untrusted'],
  ['a server that has expired by the time of the plane itself', { ...dates, stated: true }, 'server_tls_untrusted'],
  ['a server whose dates do not fit our clock', dates, 'clock_skew'],
  ['a clock that is ten years ahead', skew, 'clock_skew'],
  ['a certificate that is valid here and expired there', shown(nowMs + hour), 'clock_skew'],
  ['a certificate that is valid and yet of no use', own(nowMs + hour), 'clock_skew'],
  ['a certificate that has expired', own(nowMs), 'cert_expired'],
  ['a certificate that both sides find expired', shown(nowMs - hour), 'cert_expired'],
  ['an alert about an expired certificate', refused('CLIENT_CERT_EXPIRED'), 'cert_expired'],
  ['a revoked node', refused('NODE_REVOKED'), 'identity_revoked_or_fenced'],
  ['a quarantined node', refused('NODE_QUARANTINED'), 'identity_revoked_or_fenced'],
  ['a quarantined node that recovers', refused('NODE_QUARANTINED', 'recovery'), 'identity_revoked_or_fenced'],
  ['a withdrawn certificate', refused('CLIENT_CERT_DENIED'), 'identity_revoked_or_fenced'],
  ['a second holder', refused('DUPLICATE_IDENTITY'), 'identity_revoked_or_fenced'],
  ['a replaced certificate', refused('SERIAL_MISMATCH'), 'identity_revoked_or_fenced'],
  ['a successor with another key', refused('LINEAGE_CONFLICT'), 'identity_revoked_or_fenced'],
  ['a recovery the plane knows nothing of', refused('RECOVERY_UNKNOWN', 'recovery'), 'recovery_enrollment_blocked'],
  ['a recovery the profile denies', refused('RECOVERY_DENIED', 'recovery'), 'recovery_enrollment_blocked'],
  ['a spent budget', refused('RECOVERY_BUDGET_SPENT', 'recovery'), 'recovery_enrollment_blocked'],
  ['a used repair bundle', refused('REPAIR_TOKEN_INVALID', 'recovery'), 'recovery_enrollment_blocked'],
  ['an approval that is missing', refused('APPROVAL_REQUIRED'), 'recovery_enrollment_blocked'],
  ['a recovery server under another root', { ...untrusted, for: 'recovery' }, 'recovery_enrollment_blocked'],
  ['a recovery server that has expired', { ...dates, for: 'recovery', stated: true }, 'recovery_enrollment_blocked'],
  ['a recovery server with a clock in doubt', { ...dates, for: 'recovery' }, 'clock_skew'],
  ['a recovery refused by a code from the future', refused('NEW_CODE', 'recovery'), 'recovery_enrollment_blocked'],
  [
    'a recovery that failed by a code from the future, on the side of the plane',
    refused('NEW_CODE', 'recovery', 'unknown-later'),
    'endpoint_unreachable',
  ],
  ['a full disk', written('ENOSPC'), 'disk_full'],
  ['a used-up quota', written('EDQUOT'), 'disk_full'],
  ['a read-only disk', written('EROFS'), 'disk_full'],
  ['a disk that fails', written('EIO'), 'disk_full'],
  ['a private key that cannot be read', damaged, 'credentials_damaged'],
]

for (const [what, seen, expected] of table) {
  test(`${what} is ${expected}`, () => {
    assert.equal(classify(seen).class, expected)
  })
}

test('the table has every class', () => {
  const seen = new Set(table.map(([, , failureClass]) => failureClass))
  assert.deepEqual([...seen].sort(), [...failureClasses].sort())
})

test('a full disk comes before a wrong clock, a wrong clock before credentials, credentials before the network', () => {
  const expired = own(nowMs)
  const refusedConnection: Observed = { ...silent, code: 'ECONNREFUSED' }
  assert.equal(classify(refusedConnection, expired, skew, written('ENOSPC')).class, 'disk_full')
  assert.equal(classify(refusedConnection, expired, untrusted, skew).class, 'clock_skew')
  assert.equal(classify(refusedConnection, untrusted, expired).class, 'cert_expired')
  assert.equal(classify(refusedConnection, untrusted, damaged).class, 'credentials_damaged')
  assert.equal(classify(refusedConnection, lostName).class, 'endpoint_profile_drift')
})

test('the evidence of a wrong clock says how far and which way', () => {
  assert.deepEqual(classify({ kind: 'skew', skewMs: 600_000, toleranceMs: 300_000 }).evidence, {
    skew_ms: 600_000,
    tolerance_ms: 300_000,
    clock: '10 min behind',
  })
})

const purpose = fc.constantFrom('runtime', 'recovery')
const time = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) })
const text = fc.string({ maxLength: 400 })
const code = fc.oneof(fc.constantFrom(...Object.keys(refusals)), fc.constantFrom('HTTP_404', 'HTTP_503'), text)
const retry = fc.constantFrom<RetryClass>(
  ...new Set(Object.values(refusals).map((row) => row.retry)),
  'unknown-later',
  'unknown-address',
  'unknown',
)
const anyObserved: fc.Arbitrary<Observed> = fc.oneof(
  fc.record({
    kind: fc.constant('no-answer'),
    code: text,
    url: text,
    address: fc.option(text),
    lastGoodTried: fc.nat(8),
  }),
  fc.record({ kind: fc.constant('lost-name'), name: text, code: text, address: text }),
  fc.record({ kind: fc.constant('server-untrusted'), code: text, url: text, for: purpose }),
  fc.record({
    kind: fc.constant('server-dates'),
    url: text,
    for: purpose,
    nowMs: time,
    validity: fc.option(fc.record({ notBeforeMs: time, notAfterMs: time })),
    stated: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('own-certificate'), serial: text, notAfterMs: time, nowMs: time }),
  fc.record({
    kind: fc.constant('refused'),
    code,
    retry,
    at: purpose,
    certificate: fc.option(fc.record({ notAfterMs: time, nowMs: time })),
  }),
  fc.record({ kind: fc.constant('write-failed'), errno: text, path: text }),
  fc.record({ kind: fc.constant('skew'), skewMs: fc.integer(), toleranceMs: fc.nat() }),
)

test('whatever is observed has one class, evidence a report can carry, and a next step that names a command', () => {
  fc.assert(
    fc.property(fc.array(anyObserved, { minLength: 1, maxLength: 4 }), ([first, ...rest]) => {
      if (first === undefined) return
      const verdict = classify(first, ...rest)
      assert.ok(failureClasses.includes(verdict.class))
      assert.match(verdict.next, /\b(muster (agent|node|ca|token) [a-z-]+|timedatectl|df|mount)\b/)
      const entries = Object.entries(verdict.evidence)
      assert.ok(entries.length > 0 && entries.length <= 8)
      for (const [name, value] of entries) {
        assert.match(name, /^[a-z0-9_]{1,40}$/)
        assert.ok(value === null || typeof value === 'number' || value.length <= 128)
      }
      // More observations never hide a deeper cause.
      const alone = [first, ...rest].map((seen) => classify(seen).class)
      assert.ok(alone.includes(verdict.class))
      if (alone.includes('disk_full')) assert.equal(verdict.class, 'disk_full')
      else if (alone.includes('clock_skew')) assert.equal(verdict.class, 'clock_skew')
    }),
  )
})
