import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { decideDeleteProfile, type DeleteProfileFacts } from './profile-deletion.ts'

const remove = (facts: Partial<DeleteProfileFacts> = {}) =>
  decideDeleteProfile({
    ...{ profile: profileRow('mesh-paas'), migration: null, domain: domainRow(), nodes: 0, tokens: 0 },
    ...{ by: alice, nowMs: noonMs, ...facts },
  })

test('an unused profile becomes a tombstone, only if no node comes under it meanwhile', () => {
  const verdict = expectDecided(remove())
  assert.equal(verdict.profile.deletedAtMs, noonMs)
  assert.deepEqual(entryTypesOf(verdict), ['profile.deleted'])
  assert.deepEqual(readsOf(verdict), ['profile/mesh-paas@5', 'domain/domain@3', 'issuer-migration/mesh-paas@0'])
  assert.deepEqual(verdict.change.unused, [{ kind: 'profile', name: 'mesh-paas' }])
})

test('a profile in use stays, and each of its users is named with the command that helps', () => {
  expectRefused(remove({ nodes: 1 }), 'PROFILE_IN_USE', /^1 node under it.*muster node list --profile mesh-paas$/)
  expectRefused(remove({ tokens: 12 }), 'PROFILE_IN_USE', /^12 unused tokens .*muster token list$/)
  const domain = domainRow({ defaultProfile: 'mesh-paas' })
  expectRefused(remove({ domain }), 'PROFILE_IN_USE', /muster domain set defaultProfile=OTHER/)
  expectRefused(remove({ domain, nodes: 2, tokens: 1 }), 'PROFILE_IN_USE', /2 nodes.*; 1 unused token .*; it is the/)
})

test('a profile is deleted once', () => {
  expectRefused(remove({ profile: profileRow('mesh-paas', { deletedAtMs: 5 }) }), 'PROFILE_NOT_FOUND')
})
