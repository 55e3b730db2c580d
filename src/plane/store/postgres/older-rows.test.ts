import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { entry, type RowTypes, type Write } from '#domain/core/change.ts'
import { defaultProbeSilenceMs, type Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import type { Output } from '#domain/programs/output.ts'
import { outputsRule } from '#domain/programs/output-rules.ts'
import { planCommit } from '#plane/store/commit/plan-commit.ts'
import { decodeShared, filled, refusedOn, writableOn, youngFields } from './older-rows.ts'
import { newestSchema } from './schema-since.ts'

const profile = (probeSilenceMs: number): Profile => ({ ...(shippedProfiles[0] as Profile), probeSilenceMs })
const claim: Write = { put: 'key-claim', value: { spki: 'k', holders: [] } }

const planOf = (...writes: Write[]) =>
  planCommit({
    reads: [
      { row: 'profile', key: 'gpu-cloud', version: 1 },
      { row: 'key-claim', key: 'k', version: 0 },
      { row: 'worker-issuer', key: 'east', version: 0 },
    ],
    writes,
    entries: [entry({ actor: 'system:test', source: null, correlation: null }, 1, 'profile.changed', {}, {})],
  })

test('every field that is younger than its kind has a value for rows of before', () => {
  const all = Object.entries(youngFields).flatMap(([kind, fields]) => fields.map((field) => ({ kind, ...field })))
  for (const { kind, path, value } of all) assert.notEqual(value, undefined, `${kind} ${path.join('.')}`)
  assert.ok(all.some(({ kind, path }) => kind === 'profile' && path.join('.') === 'probeSilenceMs'))
  assert.ok(all.some(({ kind, path }) => kind === 'domain' && path.join('.') === 'maintenance.policy.regulated'))
})

test('a value that rows of before do not have is refused on the older schema, and named', () => {
  const changed = planOf({ put: 'profile', value: profile(60_000) })
  assert.equal(refusedOn(2, changed), 'probeSilenceMs of a profile')
  assert.equal(refusedOn(newestSchema, changed), null)
  const deleted = planOf({ put: 'profile', value: { ...profile(defaultProbeSilenceMs), deletedAtMs: 5 } })
  assert.deepEqual([refusedOn(4, deleted), refusedOn(5, deleted)], ['deletedAtMs of a profile', null])
})

test('an operator key with an end is refused beside replicas that would honour it for good; one without is not', () => {
  const made = { id: 'k', name: 'ci', role: 'viewer', hash: 'x', createdBy: 'operator:a', createdAtMs: 1 } as const
  const plan = (expiresAtMs: number | null) =>
    planCommit(changeOf({ put: 'operator-key', value: { ...made, revokedAtMs: null, expiresAtMs } }))
  assert.deepEqual([refusedOn(4, plan(9)), refusedOn(5, plan(9))], ['expiresAtMs of a operator-key', null])
  assert.equal(refusedOn(4, plan(null)), null)
})

test('a kind of row that the older schema has no table for is refused, unless the step derives it', () => {
  assert.equal(refusedOn(1, planOf({ put: 'profile', value: profile(defaultProbeSilenceMs) })), null)
  const plan = planOf({ put: 'profile', value: profile(defaultProbeSilenceMs) }, claim)
  assert.equal(refusedOn(2, plan), null)
  const tagged = { tag: 'x', description: '', firmware: '', tags: [], slots: 0, sku: '', createdAtMs: 0, createdBy: '' }
  const later = { put: 'hardware-profile', value: { ...tagged, removedAtMs: null } } as const
  const relied = { ...planOf(claim), writes: planCommit({ ...changeOf(later) }).writes }
  assert.equal(refusedOn(1, relied), 'a row of the kind hardware-profile')
  assert.equal(refusedOn(2, relied), null)
})

const changeOf = (write: Write) => ({
  reads: [{ row: write.put, key: 'x', version: 0 }],
  writes: [write],
  entries: [entry({ actor: 'system:test', source: null, correlation: null }, 1, 'profile.changed', {}, {})] as const,
})

test('a profile that an outside issuer signs for is refused beside replicas that would sign for it themselves', () => {
  const { certificate, ...value } = shippedProfiles[0] as Profile
  const plan = (issuer: string) =>
    planOf({ put: 'profile', value: { ...value, certificate: { ...certificate, issuer } } })
  assert.deepEqual(
    [refusedOn(6, plan('corp')), refusedOn(6, plan('built-in')), refusedOn(7, plan('corp'))],
    ['certificate.issuer of a profile', null, null],
  )
})

test('an output or a worker issuer that names an issuer is refused beside replicas that would sign themselves; one that names none is not', () => {
  const kept = (issuer: string): readonly Output[] =>
    (outputsRule.kept?.([{ name: 'web', issuer }]) ?? []) as readonly Output[]
  const [[output], [usual]] = [kept('corp'), kept('built-in')]
  assert.ok(output !== undefined && usual !== undefined)
  const listing = (...outputs: Output[]) =>
    planOf({ put: 'profile', value: { ...profile(defaultProbeSilenceMs), outputs } })
  assert.deepEqual(
    [refusedOn(6, listing(usual, output)), refusedOn(6, listing(usual)), refusedOn(newestSchema, listing(output))],
    ['outputs.issuer of a profile', null, null],
  )
  const east: RowTypes['worker-issuer'] = {
    ...{ name: 'east', iss: 'i', aud: 'a', sub: 's', types: [], vclusters: [] },
    keys: { kind: 'file', document: '' },
    ...{ createdAtMs: 1, createdBy: 'x', removedAtMs: null },
  }
  const naming = (signedBy: object) => planOf({ put: 'worker-issuer', value: { ...east, ...signedBy } })
  assert.deepEqual(
    [
      refusedOn(6, naming({ signedBy: 'corp' })),
      refusedOn(6, naming({})),
      refusedOn(newestSchema, naming({ signedBy: 'corp' })),
    ],
    ['signedBy of a worker-issuer', null, null],
  )
})

test('a value that is younger than its field is refused beside replicas that do not know it', () => {
  const row = { id: 'x', der: '', parent: 'x', notBeforeMs: 0, notAfterMs: 1, retiredAtMs: null, compromisedAtMs: null }
  const plan = (role: IssuerRow['role'], custody: IssuerRow['custody']) =>
    planCommit(changeOf({ put: 'issuer', value: { ...row, role, custody } }))
  assert.equal(refusedOn(6, plan('outside-root', 'offline')), 'role outside-root of a issuer')
  assert.equal(refusedOn(6, plan('issuing', 'pkcs11')), 'custody pkcs11 of a issuer')
  assert.deepEqual([refusedOn(6, plan('issuing', 'file')), refusedOn(7, plan('outside-root', 'transit'))], [null, null])
})

test('on the older schema claims are left out, and documents are written as the release before writes them', () => {
  const plan = planOf({ put: 'profile', value: profile(defaultProbeSilenceMs) }, claim)
  const older = writableOn(2, plan)
  assert.deepEqual(
    older.reads.map(({ row }) => row),
    ['profile'],
  )
  const { probeSilenceMs: _, outputs: __, deletedAtMs: ___, certificate, ...others } = profile(defaultProbeSilenceMs)
  const { issuer: ____, minLifetimeMs: _____, ...certificateBefore } = certificate
  const known = { ...others, certificate: certificateBefore }
  assert.deepEqual(
    older.writes.map(({ row }) => [row.kind, JSON.parse(row.doc) as unknown]),
    [['profile', known]],
  )
  assert.deepEqual(older.entries, plan.entries)
  assert.deepEqual(writableOn(newestSchema, plan), plan)
})

test('what is left out of a document is there again when it is read', () => {
  const value = profile(defaultProbeSilenceMs)
  const older = writableOn(1, planOf({ put: 'profile', value })).writes[0]?.row.doc ?? ''
  assert.deepEqual(
    Object.keys(value).filter((name) => !(name in (JSON.parse(older) as object))),
    ['probeSilenceMs', 'wireguard', 'outputs', 'deletedAtMs'],
  )
  assert.ok(!older.includes('minLifetimeMs'))
  const read = (doc: string) => decodeShared('profile', { key: value.name, version: 1, doc }).value
  assert.deepEqual(read(older), value)
  const own = { ...value, wireguard: { mode: 'required', listenPort: 1, mtu: 1280 } }
  assert.deepEqual(read(JSON.stringify(own)), own)
})

test('a field that is younger than the object it is in is filled; an object of one schema that lacks a field is left as it is', () => {
  const values = { young: { a: 0, b: 0 }, mixed: { old: 0, new: 0 } }
  const since = { young: { a: 2, b: 2 }, mixed: { old: 1, new: 3 } }
  assert.deepEqual(filled({ mixed: { old: 5 } }, values, since), { young: { a: 0, b: 0 }, mixed: { old: 5, new: 0 } })
  const damaged = { young: { a: 5 }, mixed: { old: 5, new: 5 } }
  assert.equal(filled(damaged, values, since), damaged)
  // What is known of an object is a part of it.
  const withoutObject = { young: { a: 5, b: 5 } }
  assert.equal(filled(withoutObject, { ...values, mixed: { new: 0 } }, since), withoutObject)
})
