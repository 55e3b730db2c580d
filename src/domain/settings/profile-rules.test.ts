import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { decideChangeProfile, decideCreateProfile, profileProblem } from './profile-rules.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { alice, hour, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'

const longestLeafMs = 365 * 24 * hour
const facts = { profile: profileRow('gpu-cloud'), longestLeafMs, issuers: [], by: alice, nowMs: noonMs }
const change = (set: Record<string, unknown>) => decideChangeProfile({ ...facts, migration: null, set })

test('every profile that ships works', () => {
  for (const profile of shippedProfiles) assert.equal(profileProblem(profile, longestLeafMs), null, profile.name)
})

test('a setting is changed and the journal says from what to what', () => {
  const set = { 'certificate.lifetimeMs': hour, 'certificate.subject.cn': 'gpu/{id}', onActiveConflict: 'reject' }
  const verdict = expectDecided(change(set))
  assert.equal(verdict.profile.certificate.lifetimeMs, hour)
  assert.equal(verdict.profile.certificate.subject.cn, 'gpu/{id}')
  assert.deepEqual(verdict.profile.join, facts.profile.value.join)
  assert.deepEqual(readsOf(verdict), ['profile/gpu-cloud@5'])
  assert.deepEqual(verdict.change.entries[0].body, {
    profile: 'gpu-cloud',
    changes: [
      'certificate.lifetimeMs: 86400000 -> 3600000',
      'certificate.subject.cn: "node-{id}" -> "gpu/{id}"',
      'onActiveConflict: "prove" -> "reject"',
    ],
  })
})

test('a wrong value is refused with its key and what the key takes', () => {
  const wrong: readonly [key: string, value: unknown, said: RegExp][] = [
    ['description', 'a\nb', /^description takes text/],
    ['description', 'x'.repeat(257), /at most 256/],
    ['join.allOf', [], /^join\.allOf takes a list of one or more of token, hardware, tpm/],
    ['join.allOf', ['token', 'token'], /each once/],
    ['join.allOf', 'token', /a list/],
    ['join.tokenScope', 'world', /one of node, domain/],
    ['join.tokenTtlMs', 24 * hour + 1, /whole number from 1000 to 86400000/],
    ['probeSilenceMs', 1000, /^probeSilenceMs takes 6s to 1h \(/],
    ['certificate.lifetimeMs', '24h', /whole number/],
    ['certificate.lifetimeMs', 0.5, /whole number/],
    ['certificate.renewTo', 1, /between 0 and 1/],
    ['certificate.keyTypes', ['rsa'], /ed25519, p256, p384/],
    ['certificate.subject.cn', 'node', /with \{id\}/],
    ['certificate.subject.cn', '{id}-{serial}', /\{id\} and \{domain\}/],
    ['certificate.subject.o', '{i{id}d}', /filled in/],
    ['certificate.subject.ou', '', /1 to 64/],
    ['certificate.uriSan', 'yes', /true or false/],
    ['certificate.aiaUrl', 'ftp://a/b', /http or https/],
    ['certificate.cdpUrl', 'http://user:secret@a/b', /http or https/],
    ['certificate.cdpUrl', 'http://', /http or https/],
    ['keyStorage', 'cloud', /file, memory, tpm/],
    ['onActiveConflict', null, /prove, probe, reject/],
    ['comeback.by', 'magic', /certificate, join, approve/],
    ['comeback.people', -1, /from 0 to 10/],
    ['recovery.mode', true, /auto, approve, deny/],
    ['recovery.windowMs', Number.POSITIVE_INFINITY, /whole number/],
  ]
  for (const [key, value, said] of wrong) expectRefused(change({ [key]: value }), 'PROFILE_INVALID', said)
})

test('an unknown key is refused and the known ones are named', () => {
  for (const key of ['lifetime', 'name', 'certificate', 'certificate.lifetimeMs.x', '__proto__.x', 'constructor']) {
    expectRefused(change({ [key]: 1 }), 'PROFILE_INVALID', /^there is no setting .*certificate\.lifetimeMs/)
  }
})

test('settings that do not go together are refused', () => {
  const clash = (set: Record<string, unknown>, said: RegExp) => expectRefused(change(set), 'PROFILE_INVALID', said)
  clash({ 'certificate.renewFrom': 0.8 }, /renewFrom must not be later/)
  clash({ 'certificate.lifetimeMs': longestLeafMs + 1 }, /longer than any issuer/)
  clash({ 'comeback.by': 'approve' }, /people must be at least 1/)
  clash({ keyStorage: 'tpm' }, /keyStorage tpm has no effect yet/)
  clash({ keyStorage: 'tpm', 'certificate.keyTypes': ['ed25519'] }, /TPMs have no Ed25519/)
  clash({ 'join.tokenScope': 'domain', 'join.allOf': ['hardware'] }, /needs token/)
  clash({ 'recovery.limit': 0 }, /recovery\.limit must be at least 1/)
  expectDecided(change({ 'comeback.by': 'approve', 'comeback.people': 2 }))
  expectDecided(change({ 'recovery.mode': 'deny', 'recovery.limit': 0 }))
})

test('rehearsals, budgets and what becomes of two holders are settings with bounds', () => {
  expectDecided(change({ 'recovery.rehearseEveryMs': 60_000, onDuplicate: 'fence' }))
  expectRefused(change({ 'recovery.rehearseEveryMs': 59_999 }), 'PROFILE_INVALID', /rehearseEveryMs takes/)
  expectRefused(change({ 'recovery.limit': 1001 }), 'PROFILE_INVALID', /limit takes/)
  expectRefused(change({ onDuplicate: 'both' }), 'PROFILE_INVALID', /onDuplicate takes/)
})

test('a new profile is a copy with changes, under a name that is free', () => {
  const create = { name: 'edge', from: facts.profile, existing: null, set: { 'join.tokenTtlMs': hour } }
  const verdict = expectDecided(decideCreateProfile({ ...facts, ...create }))
  assert.deepEqual([verdict.profile.name, verdict.profile.join.tokenTtlMs], ['edge', hour])
  assert.deepEqual(writesOf(verdict, 'profile'), [verdict.profile])
  assert.deepEqual(readsOf(verdict), ['profile/edge@0', 'profile/gpu-cloud@5'])
  assert.deepEqual(entryTypesOf(verdict), ['profile.created'])
  expectRefused(decideCreateProfile({ ...facts, ...create, existing: facts.profile }), 'PROFILE_EXISTS')
  const tombstone = profileRow('mesh-paas', { name: 'edge', deletedAtMs: 7 })
  const anew = expectDecided(decideCreateProfile({ ...facts, ...create, existing: tombstone }))
  assert.equal(anew.profile.deletedAtMs, null)
  assert.deepEqual(readsOf(anew), ['profile/edge@5', 'profile/gpu-cloud@5'])
  expectRefused(decideCreateProfile({ ...facts, ...create, name: 'Edge!' }), 'PROFILE_INVALID', /a name takes/)
  expectRefused(decideCreateProfile({ ...facts, ...create, set: { x: 1 } }), 'PROFILE_INVALID', /no setting x/)
})
