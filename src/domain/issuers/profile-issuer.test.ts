import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import { outsideIssuer } from '../../../test/fakes/issuer-rows.ts'
import { hour, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import type { OutsideIssuer } from './outside-issuer.ts'
import { profilesNaming, unfitForProfile } from './profile-issuer.ts'

const row = profileRow('gpu-cloud')
const naming = (issuer: string) => ({
  ...row,
  value: { ...row.value, certificate: { ...row.value.certificate, issuer } },
})
const profile = naming('corp').value
const abilities = { testedAtMs: noonMs, takesSerial: true, revokes: true, lists: false, longestMs: 24 * hour }
const corp = (changes: Partial<OutsideIssuer> = {}): OutsideIssuer => outsideIssuer({ abilities, ...changes })

test('a profile may name an issuer that is there, ours, enabled and tested for its lifetime', () => {
  assert.equal(unfitForProfile(row.value, null), null)
  assert.equal(unfitForProfile(profile, corp()), null)
  const refused = (issuer: OutsideIssuer | null, code: Parameters<typeof expectRefused>[1], why?: RegExp): void =>
    expectRefused(unfitForProfile(profile, issuer) ?? assert.fail('it was let through'), code, why)
  refused(null, 'OUTSIDE_ISSUER_NOT_FOUND')
  refused(corp({ state: { kind: 'retired', atMs: noonMs, by: 'x' } }), 'OUTSIDE_ISSUER_NOT_FOUND')
  refused(corp({ forged: true }), 'ISSUER_ROW_FORGED')
  refused(corp({ state: { kind: 'disabled', sinceMs: noonMs, by: 'x', why: 'y' } }), 'ISSUER_NOT_READY', /disabled/)
  refused(corp({ abilities: null }), 'ISSUER_NOT_READY', /not passed a test/)
  refused(corp({ abilities: { ...abilities, longestMs: 24 * hour - 1 } }), 'ISSUER_NOT_READY', /tested for 23 h 59 min/)
})

test('a Vault needs a role for the profile, or one for all', () => {
  const vault = (roles: Readonly<Record<string, string>>) =>
    corp({ access: { kind: 'vault', namespace: null, mount: 'pki', roles, login: { kind: 'token' } } })
  assert.equal(unfitForProfile(profile, vault({ 'gpu-cloud': 'node' })), null)
  assert.equal(unfitForProfile(profile, vault({ '*': 'node' })), null)
  expectRefused(unfitForProfile(profile, vault({ other: 'node' })) ?? assert.fail(), 'ISSUER_NOT_READY', /no role/)
  const named = { ...profile, name: 'constructor' }
  expectRefused(unfitForProfile(named, vault({ other: 'node' })) ?? assert.fail(), 'ISSUER_NOT_READY', /no role/)
})

test('the profiles that name an issuer are those that are there', () => {
  const deleted = naming('corp')
  assert.deepEqual(
    profilesNaming('corp', [row, naming('corp'), { ...deleted, value: { ...deleted.value, deletedAtMs: 1 } }]),
    ['gpu-cloud'],
  )
  assert.deepEqual(profilesNaming('built-in', [row, naming('corp')]), ['gpu-cloud'])
})
