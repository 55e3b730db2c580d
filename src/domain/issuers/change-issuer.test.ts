import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { Decided, Row } from '#domain/core/change.ts'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { outsideIssuer } from '../../../test/fakes/issuer-rows.ts'
import { alice, hour, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import {
  decideAddIssuer,
  decideChangeIssuer,
  decideDisable,
  decideEnable,
  decideRetire,
  decideTested,
  type AddIssuerFacts,
  type GivenAuthority,
  type KnownAuthority,
} from './change-issuer.ts'
import type { OutsideIssuer } from './outside-issuer.ts'

const root = '1'.repeat(40)
const issuing = '2'.repeat(40)
const by = { by: alice, nowMs: noonMs }

const authority = (id: string, parent = id): GivenAuthority => ({
  ...{ id, parent, der: id, subjectKeyId: `ski-${id[0] ?? ''}` },
  ...{ notBeforeMs: noonMs - hour, notAfterMs: noonMs + 1000 * hour },
})
const recorded = (given: GivenAuthority, role: IssuerRow['role'] = 'outside-root'): KnownAuthority => {
  const { subjectKeyId, ...row } = given
  return {
    subjectKeyId,
    row: { version: 3, value: { ...row, role, custody: 'offline', retiredAtMs: null, compromisedAtMs: null } },
  }
}
const rowOf = (changes: Partial<OutsideIssuer> = {}): Row<OutsideIssuer> => ({
  value: outsideIssuer(changes),
  version: 7,
})

const asked = {
  url: 'https://ca.corp.example',
  serverRoots: ['PEM'],
  authorities: [authority(root), authority(issuing, root)],
  access: outsideIssuer().access,
}
const issuersIn = (verdict: Decided) => writesOf(verdict, 'issuer') as readonly IssuerRow[]
const secrets = { key: 'e2', names: ['provisioner_key'] }
const facts: AddIssuerFacts = { name: 'corp', id: 'new', asked, secrets, all: [], known: [], ...by }

test('an issuer is added with a row for each of its authorities, and waits for its test', () => {
  const added = expectDecided(decideAddIssuer(facts))
  assert.deepEqual([added.issuer.roots, added.issuer.abilities, added.issuer.state.kind], [[root], null, 'enabled'])
  assert.deepEqual(
    issuersIn(added).map(({ id, role, custody }) => [id, role, custody]),
    [
      [root, 'outside-root', 'offline'],
      [issuing, 'outside-issuing', 'offline'],
    ],
  )
  assert.deepEqual(entryTypesOf(added), ['issuer.added'])
  assert.ok(!JSON.stringify(added.change.entries).includes('e2'), 'where a secret lies is not journaled')
  // Another issuer under the same root relies on what is on record, and writes it no second time.
  const second = expectDecided(
    decideAddIssuer({ ...facts, name: 'other', known: asked.authorities.map((one) => recorded(one)) }),
  )
  assert.equal(writesOf(second, 'issuer').length, 0)
  assert.ok(readsOf(second).some((read) => read.includes(root)))
})

test('a name is taken until its issuer retires, and the one that has it then is another issuer', () => {
  expectRefused(decideAddIssuer({ ...facts, all: [rowOf()] }), 'ISSUER_EXISTS')
  const gone = rowOf({ state: { kind: 'retired', atMs: noonMs, by: 'x' } })
  assert.equal(expectDecided(decideAddIssuer({ ...facts, all: [gone] })).issuer.id, 'new')
  for (const name of ['built-in', 'Corp', '-corp', 'a'.repeat(33)])
    expectRefused(decideAddIssuer({ ...facts, name }), 'REQUEST_INVALID')
  const many = Array.from({ length: 16 }, (_, at) => rowOf({ name: `i${at}` }))
  expectRefused(decideAddIssuer({ ...facts, all: many }), 'ISSUER_LIMIT')
})

test('an authority that is ours, withdrawn, ended, without a parent, or named like another one is not taken', () => {
  const refused = (authorities: readonly GivenAuthority[], known: readonly KnownAuthority[], why: RegExp): void => {
    expectRefused(decideAddIssuer({ ...facts, asked: { ...asked, authorities }, known }), 'REQUEST_INVALID', why)
  }
  const own = authority(root)
  const withdrawn = recorded(own)
  refused([own], [recorded(own, 'root')], /an authority of this domain/)
  const value = { ...withdrawn.row.value, compromisedAtMs: noonMs }
  refused([own], [{ ...withdrawn, row: { ...withdrawn.row, value } }], /has been withdrawn/)
  refused([{ ...own, notAfterMs: noonMs }], [], /ended/)
  refused([authority(issuing, root)], [], /no self-signed/)
  refused([own, authority(issuing, '3'.repeat(40))], [], /above .* is not among roots/)
  refused([{ ...own, subjectKeyId: null }], [], /no subject key identifier/)
  refused(
    [own],
    [recorded({ ...authority(issuing), subjectKeyId: own.subjectKeyId })],
    /the same subject key identifier/,
  )
})

test('what an issuer is changed to is told apart, and its kind and the roots of its leaves stay', () => {
  const change = { issuer: rowOf(), asked, secrets: null, all: [rowOf()], known: [recorded(authority(root))], ...by }
  const moved = expectDecided(decideChangeIssuer({ ...change, asked: { ...asked, url: 'https://other.example' } }))
  assert.deepEqual(entryTypesOf(moved), ['issuer.changed'])
  assert.equal(decideChangeIssuer({ ...change, asked }).kind, 'unchanged')
  const vault = { kind: 'vault', namespace: null, mount: 'pki', roles: { '*': 'r' }, login: { kind: 'token' } } as const
  expectRefused(decideChangeIssuer({ ...change, asked: { ...asked, access: vault } }), 'REQUEST_INVALID')
  const left = { ...asked, authorities: [authority('5'.repeat(40))] }
  expectRefused(decideChangeIssuer({ ...change, asked: left }), 'REQUEST_INVALID', /stays until corp retires/)
})

test('each state leads where it may, and a row that is not ours leads to its end alone', () => {
  const enabled = { issuer: rowOf(), ...by }
  const disabled = { issuer: rowOf({ state: { kind: 'disabled', sinceMs: noonMs, by: 'x', why: 'y' } }), ...by }
  const retired = { issuer: rowOf({ state: { kind: 'retired', atMs: noonMs, by: 'x' } }), ...by }
  const forged = { issuer: rowOf({ forged: true }), ...by }
  assert.equal(expectDecided(decideDisable(enabled, 'why')).issuer.state.kind, 'disabled')
  assert.equal(expectDecided(decideEnable(disabled)).issuer.state.kind, 'enabled')
  expectRefused(decideDisable(disabled, 'why'), 'ISSUER_STATE_CONFLICT')
  expectRefused(decideEnable(enabled), 'ISSUER_STATE_CONFLICT')
  const abilities = { takesSerial: true, revokes: true, lists: false, longestMs: hour }
  assert.equal(expectDecided(decideTested(disabled, abilities)).issuer.abilities?.longestMs, hour)
  for (const decide of [
    () => decideDisable(forged, 'why'),
    () => decideEnable(forged),
    () => decideTested(forged, abilities),
  ])
    expectRefused(decide(), 'ISSUER_ROW_FORGED')
  for (const decide of [
    () => decideDisable(retired, 'why'),
    () => decideEnable(retired),
    () => decideTested(retired, abilities),
  ])
    expectRefused(decide(), 'OUTSIDE_ISSUER_NOT_FOUND')
})

test('an issuer retires with those of its authorities that no other issuer needs, and a profile that names it meanwhile wins', () => {
  const known = [recorded(authority(root)), recorded(authority(issuing, root), 'outside-issuing')]
  const retire = {
    issuer: rowOf(),
    others: [],
    known,
    profiles: [profileRow('gpu-cloud')],
    vclusters: [],
    workerIssuers: [],
    migrations: [],
    unexpired: 0,
    waiting: 0,
    lastMs: null,
    ...by,
  }
  const done = expectDecided(decideRetire(retire))
  assert.deepEqual([done.issuer.state.kind, done.issuer.secrets], ['retired', null])
  assert.deepEqual(
    issuersIn(done).map(({ id, retiredAtMs }) => [id, retiredAtMs]),
    [
      [root, noonMs],
      [issuing, noonMs],
    ],
  )
  assert.ok(readsOf(done).some((read) => read.includes('gpu-cloud')))
  const shared = expectDecided(decideRetire({ ...retire, others: [outsideIssuer({ name: 'other', id: 'x' })] }))
  assert.equal(writesOf(shared, 'issuer').length, 0)
  const named = profileRow('gpu-cloud')
  const profiles = [
    { ...named, value: { ...named.value, certificate: { ...named.value.certificate, issuer: 'corp' } } },
  ]
  expectRefused(decideRetire({ ...retire, profiles }), 'ISSUER_IN_USE', /gpu-cloud/)
  expectRefused(decideRetire({ ...retire, unexpired: 2, lastMs: noonMs }), 'ISSUER_IN_USE', /2 certificates/)
  expectRefused(decideRetire({ ...retire, waiting: 1 }), 'ISSUER_IN_USE', /1 revocation .* wait/)
  // Its roots may be forged, too: they are left to the issuers that have them.
  assert.equal(
    writesOf(expectDecided(decideRetire({ ...retire, issuer: rowOf({ forged: true }) })), 'issuer').length,
    0,
  )
})
