import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, hour, neverKnown, nodeRow, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { membershipKinds, type Slot } from '#domain/core/node.ts'
import type { Receipt } from './receipt.ts'
import { decidePurge, purgeBarred, purgeParts, purgeWords, type PurgeFacts, type RowsOfNode } from './purge.ts'

const nothing: RowsOfNode = {
  ...{ certificates: [], programs: [], denials: [], tokens: [], receipts: [], alerts: [], allocations: [] },
  ...{ keyClaims: [], wireguardKeys: [], addresses: [], names: [] },
}

const slot = (notAfterMs: number): Slot => ({
  ...{ issuer: 'ca1', serial: 'c1', spki: 'k1', sha256: 'c1', issuedAtMs: noonMs - 48 * hour, notAfterMs },
})
const certificate = (notAfterMs: number): CertificateRow => ({
  ...slot(notAfterMs),
  subject: { kind: 'node', node: 'gpu-001', epoch: 4 },
  ...{ der: '', order: 'o1', renews: null },
})

const facts = (changes: Partial<PurgeFacts> = {}): PurgeFacts => ({
  node: nodeRow('revoked', { tenure: 2, counter: 9 }),
  former: neverKnown,
  rows: nothing,
  livedMs: noonMs,
  reason: 'asked for by its owner',
  by: alice,
  nowMs: noonMs,
  ...changes,
})

test('only a tombstone is purged', () => {
  for (const kind of membershipKinds)
    if (kind !== 'revoked')
      expectRefused(decidePurge(facts({ node: nodeRow(kind) })), 'NODE_STATE_CONFLICT', /only a rev/)
  expectDecided(decidePurge(facts()))
})

test('nothing that was given to it may still be good: a certificate, a leaf of a program, a denial', () => {
  const later = noonMs + hour
  const program = { node: 'gpu-001', epoch: 4, output: 'web', former: null, ended: null }
  const denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, atMs: 1, untilMs: later, why: 'x' } as const
  for (const rows of [
    { certificates: [row(certificate(later))] },
    { programs: [row({ ...program, current: { ...slot(later), names: [] } })] },
    { programs: [row({ ...program, current: null, former: { ...slot(later), names: [] } })] },
    { denials: [row({ ...denial, reason: 'unspecified' as const })] },
  ]) {
    expectRefused(decidePurge(facts({ rows: { ...nothing, ...rows } })), 'NODE_STATE_CONFLICT', /is good until/)
  }
})

test('a clock that is ahead of the time for which planes have run removes nothing', () => {
  const rows = { ...nothing, certificates: [row(certificate(noonMs - hour))] }
  assert.match(purgeBarred(facts({ rows, livedMs: noonMs - 2 * hour }))?.detail ?? '', /no wrong clock changes/)
  assert.equal(purgeBarred(facts({ rows, livedMs: noonMs - hour + 1 })), null)
})

test('a receipt that is collected and an alert that is open are finished first', () => {
  const receipt = row({ id: 'r1', settledAtMs: null } as Receipt)
  expectRefused(decidePurge(facts({ rows: { ...nothing, receipts: [receipt] } })), 'NODE_STATE_CONFLICT', /receipt r1/)
  const alert = row({ id: 'a1', kind: 'rows_differ', state: { kind: 'open' } } as Alert)
  expectRefused(decidePurge(facts({ rows: { ...nothing, alerts: [alert] } })), 'NODE_STATE_CONFLICT', /alert a1/)
})

test('its epoch, tenure and counter stay under the hash, and so do its keys; the rest goes', () => {
  const owner = { use: 'tls', sinceMs: 1 } as const
  const rows: RowsOfNode = {
    ...nothing,
    certificates: [row(certificate(noonMs - hour))],
    keyClaims: [
      row({
        spki: 'k1',
        holders: [
          { node: 'gpu-001', ...owner },
          { node: 'gpu-002', ...owner },
        ],
      }),
    ],
    wireguardKeys: [row({ publicKey: 'w1', node: 'gpu-001', sinceMs: 1, endedAtMs: 2, replaced: true })],
    addresses: [row({ address: 'fd00::1', node: 'gpu-001', sinceMs: 1, releasedAtMs: 2 })],
    names: [
      row({
        name: 'dns:a.test',
        holder: { kind: 'node', node: 'gpu-001', derived: false },
        sinceMs: 1,
        by: 'operator:x',
        carriedUntilMs: noonMs - hour,
      }),
    ],
  }
  const given = facts({ rows })
  const verdict = expectDecided(decidePurge(given))
  assert.deepEqual(writesOf(verdict, 'purged-node'), [
    { name: 'hash-of-name', epoch: 4, tenure: 2, counter: 9, version: given.node.version, purgedAtMs: noonMs },
  ])
  assert.deepEqual(writesOf(verdict, 'key-claim'), [
    {
      spki: 'k1',
      holders: [
        { node: 'purged:hash-of-name', ...owner },
        { node: 'gpu-002', ...owner },
      ],
    },
  ])
  assert.deepEqual(writesOf(verdict, 'wireguard-key'), [
    { publicKey: 'w1', node: 'purged:hash-of-name', sinceMs: 1, endedAtMs: 2 },
  ])
  assert.deepEqual(writesOf(verdict, 'name-claim'), [
    { name: 'dns:a.test', holder: { kind: 'nobody' }, sinceMs: 1, by: 'operator:x', carriedUntilMs: noonMs - hour },
  ])
  assert.ok(!JSON.stringify(verdict.change.writes).includes('gpu-001'))
  assert.deepEqual(verdict.change.removes, [
    { row: 'node', key: 'gpu-001' },
    { row: 'certificate', key: 'ca1/c1' },
  ])
  for (const { row: kind, key } of verdict.change.removes ?? [])
    assert.ok(readsOf(verdict).some((read) => read.startsWith(`${kind}/${key}@`)))
  assert.equal(verdict.change.entries[0]?.type, 'node.purged')
  assert.equal(verdict.change.entries[0]?.epoch, 4)
})

test('what is too much for one commit goes before it, in parts, and the last part is left to it', () => {
  const certificates = Array.from({ length: 700 }, (_, at) => row({ ...certificate(1), serial: `c${at}` }))
  const keyClaims = Array.from({ length: 900 }, (_, at) =>
    row({ spki: `k${at}`, holders: [{ node: 'gpu-001', use: 'program', sinceMs: 1 } as const] }),
  )
  const parts = purgeParts(facts({ rows: { ...nothing, certificates, keyClaims } }))
  assert.deepEqual(
    parts.map(({ removes = [], writes, reads }) => [removes.length, writes.length, reads.length]),
    [
      [500, 0, 501],
      [200, 300, 501],
      [0, 500, 501],
    ],
  )
  const places = parts.flatMap(({ reads }) => reads.slice(1).map(({ row: kind, key }) => `${kind} ${key}`))
  assert.equal(new Set(places).size, 1500)
  assert.ok(!JSON.stringify(parts.map(({ writes }) => writes)).includes('gpu-001'))
  assert.deepEqual(purgeParts(facts({ rows: { ...nothing, certificates: certificates.slice(0, 500) } })), [])
})

test('a plan says in words what goes and what stays', () => {
  const rows = { ...nothing, certificates: [row(certificate(1)), row(certificate(2))] }
  assert.match(purgeWords(rows), /observations, 2 certificates; its epoch and 0 keys stay under a hash of its name$/)
})
