// What a role has to be; that Vault itself sees it the same way is in test/peers/vault-pki.test.ts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { faultsOfRole, roleLine, type RoleNeeds, type VaultRole } from './vault-role.ts'

const day = 86_400_000
const needs: RoleNeeds = {
  subject: { cn: 'node-gpu-001', o: 'example.org', ou: 'nodes' },
  uriSans: ['spiffe://example.org/node/gpu-001'],
  dnsSans: [],
  ipSans: [],
  usage: 'client',
  lifetimeMs: day,
  for: { kind: 'node', node: 'gpu-001', epoch: 1 },
  keyTypes: ['ed25519', 'p256'],
}
const right: VaultRole = {
  allowed_uri_sans: ['spiffe://example.org/node/*'],
  client_flag: true,
  cn_validations: ['disabled'],
  key_bits: 0,
  key_type: 'any',
  key_usage: ['DigitalSignature'],
  max_ttl: 86_400,
  not_before_duration: 30,
  organization: ['example.org'],
  ou: ['nodes'],
  require_cn: true,
  serial_number_source: 'json',
  server_flag: false,
  use_csr_common_name: false,
  use_csr_sans: false,
}
const settings = (role: VaultRole, more: Partial<RoleNeeds> = {}): string[] =>
  faultsOfRole(role, { ...needs, ...more }).map(({ setting }) => setting)

test('a role that is right has no faults, also where a release of Vault does not have a setting', () => {
  assert.deepEqual(settings(right), [])
  const { serial_number_source: _source, ...older } = right
  assert.deepEqual(settings(older), [])
})

test('where the request may choose the serial number in the subject, no such number may be allowed', () => {
  const { serial_number_source: _source, ...older } = right
  assert.deepEqual(settings({ ...older, allowed_serial_numbers: ['*'] }), ['allowed_serial_numbers'])
})

describe('keys', () => {
  const cases: readonly (readonly [VaultRole, RoleNeeds['keyTypes'], readonly string[]])[] = [
    [{ key_type: 'ec', key_bits: 256 }, ['p256', 'p384'], []],
    [{ key_type: 'ec', key_bits: 384 }, ['p384'], []],
    [{ key_type: 'ec', key_bits: 384 }, ['p256', 'p384'], ['key_type']],
    [{ key_type: 'ec', key_bits: 256 }, ['ed25519', 'p256'], ['key_type']],
    [{ key_type: 'ed25519' }, ['ed25519'], []],
    [{ key_type: 'ed25519' }, ['ed25519', 'p256'], ['key_type']],
    [{ key_type: 'rsa' }, ['p256'], ['key_type']],
  ]
  for (const [role, keyTypes, faults] of cases) {
    test(`${JSON.stringify(role)} for ${keyTypes.join()}: ${faults.join() || 'right'}`, () => {
      assert.deepEqual(settings({ ...right, ...role }, { keyTypes }), faults)
    })
  }
})

test('extended key usage may be said by flags or by names', () => {
  const byName = { ...right, client_flag: false, ext_key_usage: ['ClientAuth'] }
  assert.deepEqual(settings(byName), [])
  const both = { ...right, server_flag: true }
  assert.deepEqual(settings(both, { usage: 'both' }), [])
  assert.deepEqual(settings(both), ['server_flag'])
  assert.deepEqual(settings(right, { usage: 'server' }), ['client_flag', 'server_flag'])
  assert.deepEqual(settings({ ...right, ext_key_usage: ['ServerAuth'] }), ['ext_key_usage'])
})

test('patterns of URIs are read as Vault reads them', () => {
  const allows = (...patterns: string[]): boolean => settings({ ...right, allowed_uri_sans: patterns }).length === 0
  for (const pattern of [
    '*',
    'spiffe://*',
    '*/gpu-001',
    'spiffe://*/node/*',
    needs.uriSans[0]!,
    'spiffe://example.org/node/gpu-001*',
  ])
    assert.ok(allows(pattern), pattern)
  for (const pattern of [
    '',
    'spiffe://example.org/node/',
    'spiffe://example.com/*',
    '*/gpu-002',
    'spiffe://*/plane/*',
    '*gpu-001*1',
  ])
    assert.ok(!allows(pattern), pattern)
  assert.ok(allows('spiffe://example.com/*', '*'))
  assert.deepEqual(settings({ ...right, allowed_uri_sans: [] }, { uriSans: [] }), [])
})

test('names and addresses of programs have to be allowed where there are any', () => {
  const program: Partial<RoleNeeds> = { dnsSans: ['db.example.org'], ipSans: ['192.0.2.1'] }
  assert.deepEqual(settings({ ...right, allow_ip_sans: false }, program), ['allow_any_name', 'allow_ip_sans'])
  const allowed = { ...right, allow_ip_sans: true, allowed_domains: ['example.org'] }
  assert.deepEqual(settings(allowed, program), [])
})

test('an order without organisation, organisational unit or common name needs a role without them', () => {
  const subject = { cn: '', o: '', ou: '' }
  assert.deepEqual(settings(right, { subject }), ['organization', 'ou', 'require_cn'])
  assert.deepEqual(settings({ ...right, organization: [], ou: null, require_cn: false }, { subject }), [])
})

test('the command for a new role makes it right, and allows nothing beside', () => {
  const line = roleLine('pki/roles/node', null, needs)
  for (const word of [
    'allow_localhost=false',
    'allow_ip_sans=false',
    'max_ttl=86400',
    'organization=example.org',
    'server_flag=false',
  ])
    assert.ok(line.split(' ').includes(word), `${word} in ${line}`)
  assert.ok(line.includes("'allowed_uri_sans=spiffe://example.org/node/*'"))
})

test('the command for a role that is there keeps what is right or not ours, and adds to what it allows', () => {
  const role = {
    ...right,
    ...{ key_type: 'ec', key_bits: 256, allowed_uri_sans: ['spiffe://other/*'], allowed_domains: ['x.example'] },
    ...{ no_store: true, issuer_ref: 'two', not_before_duration: 60, ttl: 0, policy_identifiers: [] },
  }
  const words = roleLine('pki/roles/node', role, needs).split(' ')
  for (const word of [
    'key_type=any',
    'allowed_domains=x.example',
    'no_store=true',
    'issuer_ref=two',
    'not_before_duration=60',
  ])
    assert.ok(words.includes(word), `${word} in ${words.join(' ')}`)
  assert.ok(words.includes("'allowed_uri_sans=spiffe://other/*,spiffe://example.org/node/*'"))
  assert.ok(!words.some((word) => /^(key_bits|ttl|policy_identifiers)=/.test(word)))
})

test('what has shown itself in a certificate is set although the role seems to be right', () => {
  const role = { ...right, max_ttl: 0 }
  assert.ok(!roleLine('pki/roles/node', role, needs).includes('max_ttl'))
  assert.ok(roleLine('pki/roles/node', role, needs, ['max_ttl']).includes('max_ttl=86400'))
})
