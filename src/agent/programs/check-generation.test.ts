import assert from 'node:assert/strict'
import { test } from 'node:test'
import { certificatePem, outputOf, programsAuthority, type LeafWish } from '../../../test/fakes/programs-authority.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { checkAuthority, checkLeaf, checkList, type LeafFacts } from './check-generation.ts'

const nowMs = Date.now()
const authority = programsAuthority(nowMs)
const other = programsAuthority(nowMs)
const roots = [authority.root.certificate.der]
const of = { domain: 'example.test', node: 'gpu-001', output: 'web' }

const made = (by = authority, change: Partial<LeafWish> = {}): LeafFacts => {
  const key = generateKey('p256')
  const { certificate_chain: chainPem } = by.leafFor(makeCsr(key, 'web'), outputOf(), change)
  return { keyPem: key.pkcs8Pem(), chainPem, roots, nowMs }
}

const fault = (facts: LeafFacts): string => {
  const checked = checkLeaf(facts, of)
  return checked.kind === 'unusable' ? checked.why : 'none'
}

test('a leaf of this program is taken, with every authority above it', () => {
  const checked = checkLeaf(made(), of)
  assert.ok(checked.kind === 'leaf')
  assert.deepEqual(
    checked.authorities.map(({ sha256 }) => sha256),
    [authority.issuing.certificate.sha256, authority.root.certificate.sha256],
  )
})

test('what is not of this program, or not below these roots, is not taken', () => {
  const good = made()
  const wrong: [LeafFacts, RegExp][] = [
    [made(other), /does not lead to a trusted root/],
    [made(authority, { uris: ['spiffe://example.test/node/gpu-002/program/web'] }), /not for spiffe/],
    [made(authority, { uris: ['spiffe://example.test/node/gpu-001/program/db'] }), /not for spiffe/],
    [made(authority, { uris: ['spiffe://other.test/node/gpu-001/program/web'] }), /not for spiffe/],
    [made(authority, { uris: ['spiffe://example.test/node/gpu-001'] }), /not for spiffe/],
    [made(authority, { uris: ['spiffe://example.test/plane'] }), /not for spiffe/],
    [{ ...good, keyPem: generateKey('p256').pkcs8Pem() }, /for another key/],
    [{ ...good, keyPem: 'x' }, /cannot be read/],
    [{ ...good, chainPem: certificatePem(authority.issuing) }, /that of an authority/],
    [{ ...good, chainPem: `${good.chainPem}x` }, /no certificate chain/],
    [{ ...good, nowMs: nowMs + 2 * 86_400_000 }, /has expired/],
    [{ ...good, roots: [] }, /does not lead to a trusted root/],
  ]
  for (const [facts, why] of wrong) assert.match(fault(facts), why)
})

test('a list is taken from the authority that signed it, and from no other', () => {
  const list = authority.lists(5).lists.at(-1)?.list ?? ''
  const known = [authority.root.certificate, authority.issuing.certificate]
  const checked = checkList(list, known, nowMs)
  assert.equal(checked.kind === 'list' ? checked.list.number : null, 5)
  assert.equal(checkList(list, [authority.root.certificate], nowMs).kind, 'unusable')
  assert.equal(checkList(other.lists().lists[0]?.list ?? '', known, nowMs).kind, 'unusable')
  assert.equal(checkList('x', known, nowMs).kind, 'unusable')
})

test('a list of a clock that was ahead is not taken', () => {
  const list = authority.lists(5).lists.at(-1)?.list ?? ''
  const known = [authority.root.certificate, authority.issuing.certificate]
  const checked = checkList(list, known, nowMs - 86_400_000)
  assert.match(checked.kind === 'unusable' ? checked.why : '', /from the future/)
})

test('another authority is taken below the same roots only', () => {
  const check = ({ der }: { readonly der: Uint8Array }) => checkAuthority(der, roots, nowMs).kind
  assert.equal(check(authority.anotherIssuing().certificate), 'authority')
  assert.equal(check(other.issuing.certificate), 'unusable')
  const [leaf] = allFromPem('CERTIFICATE', made().chainPem) ?? []
  assert.equal(check({ der: leaf ?? new Uint8Array() }), 'unusable', 'a leaf is no authority')
})
