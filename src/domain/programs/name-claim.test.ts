import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainRow, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { Row } from '#domain/core/change.ts'
import type { Output } from './output.ts'
import { readName, wildcardOver, type NameClaim } from './name-claim.ts'
import { decideAddNames, decideRemoveNames, leafNames, mostNames } from './node-names.ts'
import type { Program, ProgramLeaf } from './program.ts'

const named = (text: string): string => {
  const read = readName(text)
  return read.kind === 'name' ? read.name : 'refused'
}

test('one name or address has one text, however it is written', () => {
  assert.equal(named('DB-1.Example.'), 'dns:db-1.example')
  assert.equal(named('db'), 'dns:db')
  assert.equal(named('2001:DB8:0:0::1'), 'ip:2001:db8::1')
  assert.equal(named('::ffff:10.0.0.7'), 'ip:10.0.0.7')
  assert.equal(named('::ffff:a00:7'), 'ip:10.0.0.7')
})

test('wildcards, and what means every machine or none, are refused', () => {
  for (const text of [
    '*.example',
    '*',
    'a..b',
    '',
    '.',
    '-a.example',
    'a_b',
    'x'.repeat(64),
    '1.2.3',
    'a.1',
    'db.example..',
  ])
    assert.equal(named(text), 'refused', text)
  for (const text of [
    'localhost',
    'x.localhost',
    '127.0.0.1',
    '::1',
    '::',
    '0.0.0.0',
    '::ffff:127.0.0.1',
    'fe80::1',
    '224.0.0.1',
  ])
    assert.equal(named(text), 'refused', text)
})

test('templates make names of registered DNS names, and addresses get in where the output takes them', () => {
  const registered = ['dns:a.example', 'ip:10.0.0.7']
  assert.deepEqual(leafNames({ dns: ['{name}', 'db.{name}'], addresses: false }, registered), [
    'dns:a.example',
    'dns:db.a.example',
  ])
  assert.deepEqual(leafNames({ dns: [], addresses: true }, registered), ['ip:10.0.0.7'])
})

const by = { actor: 'operator:carol', source: null, correlation: null }
const node = nodeRow('active')
const { id } = node.value
const nowMs = noonMs

const claim = (name: string, holder: NameClaim['holder']): Row<NameClaim> => ({
  value: { name, holder, sinceMs: 0, by: 'x', carriedUntilMs: 7 },
  version: 3,
})
const own = (name: string, derived = false) => claim(name, { kind: 'node', node: id, derived })

const add = (
  name: string,
  found: Row<NameClaim> | null,
  held: readonly Row<NameClaim>[] = [],
  holder = null as never,
  wildcard: Row<NameClaim> | null = null,
) => decideAddNames({ node, held, adding: [{ name, claim: found, holder, wildcard }], by, nowMs })

const ofPlane = { kind: 'plane', use: 'certificate', joinStrings: 0, namedAtMs: null, retaken: false } as const

test('a name has one holder: another node, or the plane that is or was reached by it', () => {
  const name = 'dns:a.example'
  assert.equal(add(name, null).kind, 'decided')
  assert.equal(add(name, claim(name, { kind: 'nobody' })).kind, 'decided')
  const other = claim(name, { kind: 'node', node: 'other', derived: true })
  const codeOf = (verdict: ReturnType<typeof add>) => (verdict.kind === 'refused' ? verdict.code : verdict.kind)
  assert.equal(codeOf(add(name, other, [], nodeRow('quarantined', { id: 'other' }) as never)), 'NAME_TAKEN')
  assert.equal(codeOf(add(name, other, [], nodeRow('revoked', { id: 'other' }) as never)), 'decided')
  assert.equal(codeOf(add(name, claim(name, { ...ofPlane, dropped: null }))), 'NAME_TAKEN')
  assert.equal(codeOf(add(name, claim(name, { ...ofPlane, dropped: { atMs: 1, by: 'x' } }))), 'NAME_TAKEN')
  const wildcard = claim('dns:*.example', { ...ofPlane, dropped: null })
  assert.equal(wildcardOver(name), wildcard.value.name)
  assert.equal(codeOf(add(name, null, [], null as never, wildcard)), 'NAME_TAKEN')
  assert.equal(codeOf(add(name, own(name), [own(name)])), 'unchanged')
  const many = Array.from({ length: mostNames }, (_, at) => own(`dns:n${at}.example`))
  assert.equal(codeOf(add(name, null, many)), 'NAME_INVALID')
})

const leaf = (serial: string, names: readonly string[], notAfterMs = nowMs + 1000): ProgramLeaf => ({
  ...{ issuer: 'ca', serial, spki: serial, sha256: serial, issuedAtMs: 0, notAfterMs, names },
})
const program = (epoch: number, current: ProgramLeaf | null, former: ProgramLeaf | null = null): Row<Program> => ({
  value: { node: id, epoch, output: 'db', current, former, ended: null },
  version: 2,
})

test('taking a name denies every leaf with it, of every epoch, and with names derived from it, in the same change', () => {
  const held = [
    own('dns:a.example'),
    own('dns:b.example'),
    own('dns:db.a.example', true),
    own('dns:db.b.example', true),
  ]
  const programs = [
    program(3, leaf('old', ['dns:db.a.example']), leaf('ended', ['dns:a.example'], nowMs - 1)),
    program(4, leaf('kept', ['dns:b.example', 'dns:db.b.example']), leaf('gone', ['dns:a.example'])),
  ]
  const outputs = [{ dns: ['{name}', 'db.{name}'], addresses: false }] as unknown as readonly Output[]
  const verdict = decideRemoveNames({
    ...{ node, held, removing: ['dns:a.example'], programs, outputs, domain: domainRow(), by, nowMs },
  })
  assert.equal(verdict.kind, 'decided')
  if (verdict.kind !== 'decided') return
  assert.deepEqual(verdict.names, ['dns:b.example'])
  const { writes, reads, entries } = verdict.change
  const denied = writes.flatMap((write) =>
    write.put === 'denial' && write.value.kind === 'certificate' ? [write.value.serial] : [],
  )
  assert.deepEqual(denied, ['old', 'ended', 'gone'], 'also what has expired by a clock that may be wrong')
  const freed = writes.flatMap((write) =>
    write.put === 'name-claim' ? [[write.value.name, write.value.holder.kind]] : [],
  )
  assert.deepEqual(freed, [
    ['dns:a.example', 'nobody'],
    ['dns:db.a.example', 'nobody'],
  ])
  assert.ok(reads.some(({ row }) => row === 'node') && writes.some(({ put }) => put === 'node'), 'ordered by the node')
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['node.names_removed', 'program.ended', 'program.ended'],
  )
})
