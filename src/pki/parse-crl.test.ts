import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildCrl, type CrlSpec } from './crl.ts'
import { generateKey } from './keys.ts'
import { isListSignedBy, parseCrl } from './parse-crl.ts'
import { hierarchy, nowMs } from '../../test/vectors/pki-hierarchy.ts'

const { issuing, domainCa } = hierarchy('p256', nowMs)

const spec: CrlSpec = {
  issuer: issuing.certificate.subjectName,
  authorityKeyId: issuing.certificate.subjectKeyId ?? '',
  number: 2 ** 40 + 7,
  baseNumber: null,
  thisUpdateMs: nowMs,
  nextUpdateMs: nowMs + 86_400_000,
  entries: [{ serial: 'beef', atMs: nowMs, reason: 'key-compromise' }],
  freshestUrl: null,
}

const parsed = (change: Partial<CrlSpec>, key = issuing.key) => parseCrl(buildCrl({ ...spec, ...change }, key))

test('a list is read as it was written, and is by its issuer and by no other', () => {
  const list = parsed({})
  assert.ok(list.kind === 'list')
  const { number, thisUpdateMs, nextUpdateMs, authorityKeyId } = list
  assert.deepEqual(
    { number, thisUpdateMs, nextUpdateMs, authorityKeyId },
    { number: 2 ** 40 + 7, thisUpdateMs: nowMs, nextUpdateMs: nowMs + 86_400_000, authorityKeyId: spec.authorityKeyId },
  )
  assert.ok(isListSignedBy(list, issuing.certificate))
  assert.ok(!isListSignedBy(list, domainCa.certificate))
  const forged = parsed({}, generateKey('p256'))
  assert.ok(forged.kind === 'list' && !isListSignedBy(forged, issuing.certificate))
})

test('lists that revoke the same have the same entries, whatever their number', () => {
  const entriesOf = (change: Partial<CrlSpec>): string => {
    const list = parsed(change)
    assert.ok(list.kind === 'list')
    return Buffer.from(list.entries).toString('hex')
  }
  assert.equal(entriesOf({}), entriesOf({ number: 9, nextUpdateMs: nowMs + 5_000 }))
  assert.notEqual(entriesOf({}), entriesOf({ entries: [] }))
  assert.equal(entriesOf({ entries: [] }), '')
})

test('a list that only adds to another is not read, and neither is one with a byte too many or too few', () => {
  assert.equal(parsed({ baseNumber: 3 }).kind, 'malformed')
  const der = buildCrl(spec, issuing.key)
  assert.equal(parseCrl(der.subarray(0, der.length - 1)).kind, 'malformed')
  assert.equal(parseCrl(Buffer.concat([der, Uint8Array.of(0)])).kind, 'malformed')
  assert.equal(parseCrl(issuing.certificate.der).kind, 'malformed')
})

test('no change of a single byte makes another list that is signed', () => {
  const der = buildCrl(spec, issuing.key)
  for (let at = 0; at < der.length; at++) {
    const changed = Uint8Array.from(der)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    const list = parseCrl(changed)
    assert.ok(list.kind === 'malformed' || !isListSignedBy(list, issuing.certificate), `byte ${at}`)
  }
})
