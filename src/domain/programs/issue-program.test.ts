import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainRow, nodeRow, noonMs, profileRow, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { testPrincipal } from '../../../test/fakes/test-session.ts'
import type { IssuedCertificate } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { forbids } from '#domain/core/cut-off.ts'
import { decideProgram, programIssued, type ProgramFacts } from './issue-program.ts'
import type { NameClaim } from './name-claim.ts'
import { outputsRule } from './output-rules.ts'
import type { Output } from './output.ts'
import type { Program, ProgramLeaf } from './program.ts'

const kept = outputsRule.kept?.([
  { name: 'db', usage: 'server', dns: ['db.{name}'], lifetimeMs: 3_600_000 },
  { name: 'probe' },
]) as readonly [Output, Output]
const [db, probe] = kept

const node = nodeRow('active', { epoch: 4 })
const { id } = node.value
const claim: Row<NameClaim> = {
  value: {
    name: 'dns:a.example',
    holder: { kind: 'node', node: id, derived: false },
    sinceMs: 0,
    by: 'x',
    carriedUntilMs: 0,
  },
  version: 1,
}
const profile = profileRow('gpu-cloud')

const facts: ProgramFacts = {
  node,
  principal: testPrincipal(id, { epoch: 4 }),
  profile: { ...profile, value: { ...profile.value, outputs: [db, probe] } },
  vcluster: null,
  domain: domainRow(),
  output: 'db',
  key: { kind: 'key', keyType: 'p256', spki: new Uint8Array([1]), spkiHash: 'new-key' },
  keyBan: null,
  keyClaim: null,
  ordered: null,
  program: null,
  held: [claim],
  claims: [{ name: 'dns:db.a.example', claim: null, holder: null, wildcard: null }],
  withdrawn: [],
  orderId: 'o1',
  by: { actor: `node:${id}`, source: null, correlation: null },
  nowMs: noonMs,
}

const codeOf = (changes: Partial<ProgramFacts>): string => {
  const verdict = decideProgram({ ...facts, ...changes })
  return verdict.kind === 'refused' ? verdict.code : verdict.kind
}

const leaf = (serial: string, changes: Partial<ProgramLeaf> = {}): ProgramLeaf => ({
  ...{ issuer: 'ca', serial, spki: serial, sha256: serial, issuedAtMs: noonMs - 1000, notAfterMs: noonMs + 1000 },
  names: ['dns:db.a.example'],
  ...changes,
})
const programOf = (current: ProgramLeaf | null, former: ProgramLeaf | null = null): Row<Program> => ({
  value: { node: id, epoch: 4, output: 'db', current, former, ended: null },
  version: 2,
})

test('the order has the names of the registry, the lifetime and usage of the output, and only the key of the request', () => {
  const verdict = decideProgram(facts)
  assert.ok(verdict.kind === 'admitted')
  const { order } = verdict
  const domain = facts.domain.value.name
  assert.deepEqual(order.uriSans, [`spiffe://${domain}/node/${id}/program/db`])
  assert.deepEqual(
    [order.dnsSans, order.ipSans, order.usage, order.lifetimeMs],
    [['db.a.example'], [], 'server', 3_600_000],
  )
  assert.deepEqual(order.for, { kind: 'program', node: id, epoch: 4, output: 'db' })
  assert.equal(order.publicKey, facts.key.kind === 'key' ? facts.key.spki : null)
})

test('who gets none: an output that is not listed, a node that is not active, a key that is in use, a name of another', () => {
  assert.equal(codeOf({ output: 'other' }), 'OUTPUT_NOT_LISTED')
  assert.equal(codeOf({ held: [], claims: [] }), 'OUTPUT_WITHOUT_NAMES')
  assert.equal(codeOf({ node: nodeRow('quarantined', { epoch: 4 }) }), 'NODE_STATE_CONFLICT')
  assert.equal(codeOf({ principal: testPrincipal(id, { epoch: 3 }) }), 'CLIENT_CERT_DENIED')
  assert.equal(codeOf({ key: { kind: 'malformed', why: 'x' } }), 'CSR_INVALID')
  assert.equal(codeOf({ keyBan: { value: { spki: 'new-key', why: 'x', atMs: 0 }, version: 1 } }), 'KEY_BLOCKED')
  const holders = [{ node: id, use: 'tls', sinceMs: 0 }] as const
  assert.equal(codeOf({ keyClaim: { value: { spki: 'new-key', holders }, version: 1 } }), 'KEY_IN_USE')
  const ofPlane = { kind: 'plane', use: 'certificate', joinStrings: 0, namedAtMs: null, retaken: false } as const
  const served: Row<NameClaim> = {
    value: { name: 'dns:db.a.example', holder: { ...ofPlane, dropped: null }, sinceMs: 0, by: 'x', carriedUntilMs: 0 },
    version: 1,
  }
  assert.equal(
    codeOf({ claims: [{ name: 'dns:db.a.example', claim: served, holder: null, wildcard: null }] }),
    'NAME_TAKEN',
  )
  const issuance = { kind: 'halted', by: 'x', sinceMs: 0, reason: 'x', renewals: true } as const
  const halted = { ...facts.domain, value: { ...facts.domain.value, issuance } }
  assert.equal(codeOf({ domain: halted }), 'ISSUANCE_HALTED')
  assert.equal(codeOf({ domain: halted, program: programOf(leaf('a')) }), 'admitted', 'a renewal goes on')
})

test("a vCluster's output of the same name is the one that counts", () => {
  const own = vclusterRow('blue', { outputs: [{ ...db, lifetimeMs: 60_000 }] })
  const verdict = decideProgram({ ...facts, vcluster: own })
  assert.ok(verdict.kind === 'admitted' && verdict.order.lifetimeMs === 60_000)
})

test('the same key gets the same certificate, as long as that is good and carries what it should', () => {
  const current = leaf('a', { spki: 'new-key' })
  assert.equal(codeOf({ program: programOf(current) }), 'repeat')
  for (const changed of [{ notAfterMs: noonMs }, { names: [] }, { issuedAtMs: noonMs + 3_600_000 }])
    assert.notEqual(codeOf({ program: programOf({ ...current, ...changed }) }), 'repeat')
  assert.notEqual(codeOf({ program: programOf(current), withdrawn: ['ca'] }), 'repeat')
})

const issued: IssuedCertificate = {
  ...{ issuer: 'ca', serial: 'new', spki: 'new-key', sha256: 'x', issuedAtMs: noonMs, notAfterMs: noonMs + 1 },
  ...{ der: '', order: 'o1' },
}
const written = (changes: Partial<ProgramFacts>) => {
  const verdict = decideProgram({ ...facts, ...changes })
  assert.ok(verdict.kind === 'admitted')
  return programIssued(verdict, issued)
}

test('two leaves are good at a time: the one before stays, one before that is denied', () => {
  const { writes, reads, entries } = written({ program: programOf(leaf('b'), leaf('a')) })
  const put = <K extends (typeof writes)[number]['put']>(kind: K) => writes.filter((write) => write.put === kind)
  const [program] = put('program')
  assert.ok(program?.put === 'program')
  assert.deepEqual([program.value.current?.serial, program.value.former?.serial], ['new', 'b'])
  assert.deepEqual(
    put('denial').map((write) => write.put === 'denial' && write.value.kind === 'certificate' && write.value.serial),
    ['a'],
  )
  assert.equal(put('node').length, 1, 'a revocation at the same time loses its race, or this does')
  assert.deepEqual(
    put('name-claim').map((write) => write.put === 'name-claim' && write.value.holder),
    [{ kind: 'node', node: id, derived: true }],
  )
  for (const kind of ['node', 'profile', 'domain', 'key-ban', 'key-claim', 'program', 'name-claim'])
    assert.ok(
      reads.some(({ row }) => row === kind),
      kind,
    )
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['program.renewed'],
  )
  assert.deepEqual(
    written({}).entries.map(({ type }) => type),
    ['program.issued'],
  )
})

test('a node that asks for one leaf after the other waits, so that the revocation list stays short; what an operator changes does not', () => {
  const day = 86_400_000
  const issued = (serial: string, agoMs: number) =>
    leaf(serial, { issuedAtMs: noonMs - agoMs, notAfterMs: noonMs - agoMs + day })
  const both = programOf(issued('b', 1000), issued('a', 60_000))
  const verdict = decideProgram({ ...facts, program: both })
  assert.ok(verdict.kind === 'refused' && verdict.code === 'RATE_LIMITED')
  assert.equal(verdict.retryAfterMs, day / 24 - 60_000)
  assert.equal(codeOf({ program: both, nowMs: noonMs + day / 24 }), 'admitted')
  assert.equal(codeOf({ program: programOf(issued('b', 1000)) }), 'admitted', 'a second one denies none')
  assert.equal(codeOf({ program: both, withdrawn: ['ca'] }), 'admitted')
  const renamed = programOf({ ...issued('b', 1000), names: ['dns:other.example'] }, issued('a', 60_000))
  assert.equal(codeOf({ program: renamed }), 'admitted')
})

test('a leaf that leaves its row is denied also where it has expired by a clock that may be wrong', () => {
  const ended = { ...leaf('a'), notAfterMs: noonMs - 1 }
  const denied = written({ program: programOf(leaf('b'), ended) }).writes.filter(({ put }) => put === 'denial')
  assert.equal(denied.length, 1)
})

test('an order that waits for the store forbids a leaf of the node it cuts off, and of the authority it withdraws', () => {
  const change = written({})
  const by = { actor: 'operator:carol', source: null, correlation: null }
  const reason = 'x'
  assert.equal(forbids({ kind: 'revoke', node: id, by, reason }, change), true)
  assert.equal(forbids({ kind: 'quarantine', node: 'other', by, reason }, change), false)
  assert.equal(forbids({ kind: 'withdraw', issuer: 'ca', by, reason }, change), true)
  assert.equal(forbids({ kind: 'halt', renewals: true, by, reason }, change), true)
  const renewal = written({ program: programOf(leaf('b')) })
  assert.equal(forbids({ kind: 'halt', renewals: true, by, reason }, renewal), false)
})

test('the claim of a name says until when a leaf with it could be shown, also after a shorter one was issued', () => {
  const carried = (held: Row<NameClaim> | null): readonly number[] => {
    const claims = [{ name: 'dns:db.a.example', claim: held, holder: null, wildcard: null }]
    return written({ claims }).writes.flatMap((write) =>
      write.put === 'name-claim' ? [write.value.carriedUntilMs] : [],
    )
  }
  const own = { ...claim.value, name: 'dns:db.a.example', holder: { kind: 'node', node: id, derived: true } } as const
  // A machine whose clock is behind accepts it until then.
  const untilMs = issued.notAfterMs + facts.domain.value.clockToleranceMs
  assert.deepEqual(carried(null), [untilMs])
  assert.deepEqual(carried({ value: own, version: 1 }), [untilMs])
  assert.deepEqual(carried({ value: { ...own, carriedUntilMs: untilMs + 9 }, version: 1 }), [untilMs + 9])
  const free = { ...own, holder: { kind: 'nobody' }, carriedUntilMs: untilMs + 9 } as const
  assert.deepEqual(carried({ value: free, version: 1 }), [untilMs + 9], 'what another node was given counts too')
})
