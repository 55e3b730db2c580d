import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { planeMark } from '#domain/core/plane-mark.ts'
import { generateKey } from '#pki/keys.ts'
import { verifyServerChain } from '#pki/verify-chain.ts'
import { day, hierarchy, host, leaf, nowMs, serverOrder } from './pki-hierarchy.ts'
import { hostileChains } from './pki-hostile-chains.ts'

const mark = { uri: planeMark('example.test'), required: false }

suite('a server is not trusted when', () => {
  for (const { wrong, code, chain, rootFingerprint, host: wanted, nowMs: atMs } of hostileChains()) {
    test(wrong, () => {
      const verdict = verifyServerChain({ chain, mark, anchor: { rootFingerprint }, host: wanted, nowMs: atMs })
      assert.ok(verdict.kind === 'untrusted')
      assert.equal(verdict.code, code, verdict.why)
      const clockAlone = code === 'expired' || code === 'not-yet-valid'
      if (!clockAlone) assert.equal(verdict.validity, null)
    })
  }
})

const { root, domainCa, issuing } = hierarchy('p256', nowMs)
const key = generateKey('p256')
const server = leaf(key, serverOrder(key, {}), issuing)
const [leafDer, issuingDer, domainDer, rootDer] = [server, issuing, domainCa, root].map((one) => one.certificate.der)
assert.ok(leafDer !== undefined && issuingDer !== undefined && domainDer !== undefined && rootDer !== undefined)
const full = [leafDer, issuingDer, domainDer, rootDer]
const byFingerprint = { rootFingerprint: root.certificate.sha256 }

for (const name of [
  host,
  'PLANE.example.TEST',
  `${host}.`,
  'a.internal.example.test',
  'localhost',
  '127.0.0.1',
  '[::1]',
]) {
  test(`a server with the right chain is trusted as ${name}`, () => {
    const verdict = verifyServerChain({ chain: full, mark, anchor: byFingerprint, host: name, nowMs })
    assert.ok(verdict.kind === 'trusted', JSON.stringify(verdict))
    assert.deepEqual(Buffer.from(verdict.root), Buffer.from(rootDer))
    assert.equal(verdict.leaf.sha256, server.certificate.sha256)
  })
}

test('with the roots at hand the chain may leave the root out or bring it along', () => {
  const stranger = hierarchy('p256', nowMs).root.certificate.der
  for (const chain of [full, full.slice(0, 3)]) {
    const verdict = verifyServerChain({ chain, mark, anchor: { roots: [stranger, rootDer] }, host, nowMs })
    assert.equal(verdict.kind, 'trusted')
    const other = verifyServerChain({ chain, mark, anchor: { roots: [stranger] }, host, nowMs })
    assert.ok(other.kind === 'untrusted' && other.code === 'no-root')
  }
})

test('a trusted root that is no certificate is reported, not skipped', () => {
  const verdict = verifyServerChain({ chain: full, mark, anchor: { roots: [Uint8Array.of(0x30, 0)] }, host, nowMs })
  assert.ok(verdict.kind === 'untrusted' && verdict.code === 'malformed')
})

test('the error of a wrong clock names the time in which the whole chain is valid', () => {
  const late = verifyServerChain({ chain: full, mark, anchor: byFingerprint, host, nowMs: nowMs + 400 * day })
  assert.ok(late.kind === 'untrusted' && late.code === 'expired')
  assert.deepEqual(late.validity, { notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 90 * day })
})

test('a chain is valid from its first second to the last before its end', () => {
  const at = (ms: number): string =>
    verifyServerChain({ chain: full, mark, anchor: byFingerprint, host, nowMs: ms }).kind
  assert.equal(at(nowMs - 60_001), 'untrusted')
  assert.equal(at(nowMs - 60_000), 'trusted')
  assert.equal(at(nowMs + 90 * day - 1), 'trusted')
  assert.equal(at(nowMs + 90 * day), 'untrusted')
})

test('the caller may allow shorter chains only', () => {
  const verdict = verifyServerChain({ chain: full, mark, anchor: byFingerprint, host, nowMs, maxLength: 3 })
  assert.ok(verdict.kind === 'untrusted' && verdict.code === 'too-long')
})
