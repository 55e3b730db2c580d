import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { outsideIssuer } from '../../../test/fakes/issuer-rows.ts'
import { alice, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import type { Row } from '#domain/core/change.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  decideBegin,
  decideEndWithdrawn,
  decideStep,
  migrationsWith,
  type MigrationDecided,
  type MigrationStep,
} from './change-migration.ts'
import { issuersInSet } from './issuer-set.ts'
import type { IssuerMigration, Progress } from './migration.ts'
import type { OutsideIssuer } from './outside-issuer.ts'

const corp = (changes: Partial<OutsideIssuer> = {}) => ({ value: outsideIssuer(changes), version: 4 })
const naming = (issuer: string): Row<Profile> => {
  const { value, version } = profileRow('gpu-cloud')
  return { version, value: { ...value, certificate: { ...value.certificate, issuer } } }
}
const standing = { issuers: [corp()], by: alice, nowMs: noonMs }
const begin = (more: Partial<Parameters<typeof decideBegin>[0]> = {}) =>
  decideBegin({ id: 'm1', to: 'corp', present: null, profile: naming('built-in'), ...standing, ...more })
const ready: Progress = {
  ...{ unconfirmed: [], underOld: [], underNew: [], newAnswers: true },
  leaves: { count: 0, lastMs: 0 },
}
const row = ({ migration }: MigrationDecided, version = 1): Row<IssuerMigration> => ({ value: migration, version })
const step = (migration: Row<IssuerMigration>, taken: MigrationStep, more: object = {}) =>
  decideStep({ migration, profile: naming('built-in'), progress: ready, ...standing, ...more }, taken)
const begun = expectDecided(begin())
const shared = expectDecided(step(row(begun), { kind: 'share', percent: 100 }))
const finished = expectDecided(step(row(shared), { kind: 'finish' }))

test('a migration begins with its row, and relies on both issuers', () => {
  assert.deepEqual(entryTypesOf(begun), ['issuer.migration_begun'])
  assert.deepEqual(readsOf(begun), ['issuer-migration/gpu-cloud@0', 'profile/gpu-cloud@5', 'outside-issuer/corp@4'])
  assert.deepEqual([begun.migration.from, begun.migration.to, begun.migration.by], ['built-in', 'corp', alice.actor])
  assert.equal(writesOf(begun, 'profile').length, 0, 'nothing else changes')
})

test('a profile goes only to an issuer that it may name', () => {
  expectRefused(begin({ to: 'vault' }), 'OUTSIDE_ISSUER_NOT_FOUND')
  expectRefused(begin({ issuers: [corp({ abilities: null })] }), 'ISSUER_NOT_READY')
  expectRefused(begin({ to: 'built-in' }), 'MIGRATION_NOT_READY', /signed by built-in already/)
  expectRefused(begin({ present: row(begun) }), 'MIGRATION_NOT_READY', /on its way/)
  const disabled = corp({ state: { kind: 'disabled', sinceMs: noonMs, by: 'operator:carol', why: 'x' } })
  expectRefused(step(row(begun), { kind: 'share', percent: 5 }, { issuers: [disabled] }), 'ISSUER_NOT_READY')
})

test('the profile names the new issuer from the end on, and the old one after a step back', () => {
  const named = (decided: MigrationDecided) =>
    writesOf(decided, 'profile').map((profile) => (profile as Profile).certificate.issuer)
  assert.deepEqual([named(shared), named(finished)], [[], ['corp']])
  const back = expectDecided(step(row(finished), { kind: 'back' }, { profile: naming('corp') }))
  assert.deepEqual([back.migration.stage, named(back)], [{ kind: 'share', percent: 100 }, ['built-in']])
  const retired = expectDecided(step(row(finished), { kind: 'retire' }, { profile: naming('corp') }))
  assert.deepEqual([named(retired), entryTypesOf(retired)], [[], ['issuer.migration_ended']])
  expectRefused(step(row(retired), { kind: 'back' }), 'MIGRATION_NOT_FOUND')
})

test('a refusal names who is in the way, and counts those that it has no room for', () => {
  const unconfirmed = Array.from({ length: 50 }, (_, index) => `gpu-${index}`)
  const share = step(row(begun), { kind: 'share', percent: 5 }, { progress: { ...ready, unconfirmed } })
  expectRefused(share, 'MIGRATION_NOT_READY', /^50 nodes: .*gpu-0, gpu-1, .*gpu-39 and 10 more$/)
})

test('a row that is not ours takes no step, and can be ended', () => {
  const forged = { value: { ...shared.migration, forged: true as const }, version: 3 }
  expectRefused(step(forged, { kind: 'finish' }), 'ISSUER_ROW_FORGED')
  expectRefused(begin({ present: forged }), 'ISSUER_ROW_FORGED')
  const ended = expectDecided(step(forged, { kind: 'back' }))
  assert.deepEqual(
    [ended.migration.stage.kind, ended.migration.forged, writesOf(ended, 'profile')],
    ['ended', undefined, []],
  )
})

test('where an issuer was withdrawn, the profile names the other one', () => {
  const of = (migration: MigrationDecided, named: string, withdrawn: string) =>
    writesOf(
      decideEndWithdrawn({ migration: row(migration), profile: naming(named), ...standing }, withdrawn),
      'profile',
    )
  assert.deepEqual(of(shared, 'built-in', 'corp'), [])
  assert.deepEqual(
    of(finished, 'corp', 'corp').map((profile) => (profile as Profile).certificate.issuer),
    ['built-in'],
  )
})

test('an issuer is in use on both sides of a migration that is under way', () => {
  assert.deepEqual(migrationsWith('corp', [row(begun)]), ['gpu-cloud'])
  assert.deepEqual(migrationsWith('built-in', [row(finished)]), ['gpu-cloud'])
  const ended = expectDecided(step(row(begun), { kind: 'back' }))
  assert.deepEqual(migrationsWith('corp', [row(ended)]), [])
})

test('the set has the issuers that profiles name and both sides of each migration, and the built-in one only for that', () => {
  const { value: outside } = naming('corp')
  const { value: usual } = naming('built-in')
  const deleted = { ...outside, deletedAtMs: noonMs, certificate: { ...outside.certificate, issuer: 'gone' } }
  assert.deepEqual(issuersInSet([usual, deleted], []), [])
  assert.deepEqual(issuersInSet([usual, outside], []), ['corp'])
  assert.deepEqual(issuersInSet([usual], [begun.migration]), ['corp', 'built-in'])
  const retired = { ...begun.migration, stage: { kind: 'retire' as const } }
  assert.deepEqual(issuersInSet([outside], [retired]), ['corp'])
})
