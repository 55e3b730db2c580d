import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { signingOrder } from '../../../test/fakes/issuer-rows.ts'
import { alice, hour, neverKnown, nodeRow, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import type { RowTypes } from '#domain/core/change.ts'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { membershipKinds, type Slot } from '#domain/core/node.ts'
import type { Fate } from '#domain/issuers/order.ts'
import type { Receipt } from './receipt.ts'
import {
  addPurging,
  addSteps,
  decidePurge,
  emptySurvey,
  nothingPurged,
  purgeBarred,
  purgePart,
  purgeStep,
  purgeWords,
  type PurgedKind,
  type PurgeFacts,
  type PurgeStep,
  type PurgeSurvey,
} from './purge.ts'

const step = <K extends PurgedKind>(kind: K, value: RowTypes[K]): PurgeStep =>
  purgeStep(kind, row(value), 'gpu-001', 'hash-of-name')
const survey = (...steps: readonly PurgeStep[]): PurgeSurvey => addSteps(emptySurvey, steps)

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
  survey: emptySurvey,
  livedMs: noonMs,
  reason: 'asked for by its owner',
  by: alice,
  nowMs: noonMs,
  ...changes,
})

test('only a tombstone is purged', () => {
  for (const kind of membershipKinds)
    if (kind !== 'revoked')
      expectRefused(decidePurge(facts({ node: nodeRow(kind) }), nothingPurged), 'NODE_STATE_CONFLICT', /only a rev/)
  expectDecided(decidePurge(facts(), nothingPurged))
})

test('an orphan at an outside issuer is waited for, and an order that was refused is not', () => {
  const attempts = (fate: Fate) => [{ serial: 'a9', atMs: noonMs, fate }]
  const ordered = (fate: Fate) =>
    decidePurge(facts({ survey: survey(step('order', signingOrder({ attempts: attempts(fate) }))) }), nothingPurged)
  const later = { untilMs: noonMs + hour }
  for (const fate of [{ kind: 'open' }, { kind: 'orphan', serial: 'a9' }, { kind: 'may-exist', ...later }] as const)
    expectRefused(ordered(fate), 'NODE_STATE_CONFLICT', /is good until/)
  for (const fate of [
    { kind: 'unsigned', why: 'no' },
    { kind: 'kept', serial: 'a9' },
  ] as const)
    assert.deepEqual(expectDecided(ordered(fate)).change.removes?.at(-1), { row: 'order', key: 'order-1' })
})

test('nothing that was given to it may still be good: a certificate, a leaf of a program, a denial', () => {
  const later = noonMs + hour
  const program = { node: 'gpu-001', epoch: 4, output: 'web', former: null, ended: null }
  const denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, atMs: 1, untilMs: later, why: 'x' } as const
  for (const given of [
    step('certificate', certificate(later)),
    step('program', { ...program, current: { ...slot(later), names: [] } }),
    step('program', { ...program, current: null, former: { ...slot(later), names: [] } }),
    step('denial', { ...denial, reason: 'unspecified' }),
  ]) {
    const refused = decidePurge(facts({ survey: survey(given) }), nothingPurged)
    expectRefused(refused, 'NODE_STATE_CONFLICT', /is good until/)
  }
})

test('a clock that is ahead of the time for which planes have run removes nothing', () => {
  const given = facts({ survey: survey(step('certificate', certificate(noonMs - hour))) })
  const barredAt = (livedMs: number) => purgeBarred({ ...given, livedMs })?.detail ?? null
  assert.match(barredAt(noonMs - 2 * hour) ?? '', /no wrong clock changes/)
  assert.equal(barredAt(noonMs - 2 * hour), barredAt(noonMs - 3 * hour), 'a plan that says so is not stale at once')
  assert.equal(barredAt(noonMs - hour + 1), null)
})

test('a receipt that is collected and an alert that is open are finished first', () => {
  const refused = (given: PurgeStep) => decidePurge(facts({ survey: survey(given) }), nothingPurged)
  const receipt = { id: 'r1', settledAtMs: null } as Receipt
  expectRefused(refused(step('receipt', receipt)), 'NODE_STATE_CONFLICT', /receipt r1/)
  const alert = { id: 'a1', kind: 'rows_differ', state: { kind: 'open' } } as Alert
  expectRefused(refused(step('alert', alert)), 'NODE_STATE_CONFLICT', /alert a1/)
})

test('its epoch, tenure and counter stay under the hash, and so do its keys; the rest goes', () => {
  const owner = { use: 'tls', sinceMs: 1 } as const
  const given = facts({
    survey: survey(
      step('certificate', certificate(noonMs - hour)),
      step('key-claim', {
        spki: 'k1',
        holders: [
          { node: 'gpu-001', ...owner },
          { node: 'gpu-002', ...owner },
        ],
      }),
      step('wireguard-key', { publicKey: 'w1', node: 'gpu-001', sinceMs: 1, endedAtMs: 2, replaced: true }),
      step('overlay-address', { address: 'fd00::1', node: 'gpu-001', sinceMs: 1, releasedAtMs: 2 }),
      step('name-claim', {
        name: 'dns:a.test',
        holder: { kind: 'node', node: 'gpu-001', derived: false },
        sinceMs: 1,
        by: 'operator:x',
        carriedUntilMs: noonMs - hour,
      }),
    ),
  })
  const verdict = expectDecided(decidePurge(given, { ...nothingPurged, certificates: 500, keys_kept: 40 }))
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
  const body = verdict.change.entries[0]?.body
  assert.deepEqual([body?.['certificates'], body?.['keys_kept']], [501, 42], 'what went in parts before is counted')
})

test('a part removes and hides what it is given, reads the node, and says how much it was', () => {
  const owner = { node: 'gpu-001', use: 'program', sinceMs: 1 } as const
  const part = purgePart(facts(), [
    step('certificate', certificate(1)),
    step('key-claim', { spki: 'k1', holders: [owner] }),
  ])
  assert.deepEqual(
    part.reads.map(({ row: kind, key }) => `${kind} ${key}`),
    ['node gpu-001', 'certificate ca1/c1', 'key-claim k1'],
  )
  assert.deepEqual(part.removes, [{ row: 'certificate', key: 'ca1/c1' }])
  assert.ok(!JSON.stringify(part.writes).includes('gpu-001'))
  const said = part.entries[0] ?? assert.fail('it says nothing')
  assert.equal(said.type, 'node.purging')
  const twice = [said, said].reduce((sum, one) => addPurging(sum, one), nothingPurged)
  assert.deepEqual(twice, { ...nothingPurged, certificates: 2, keys_kept: 2 })
  assert.deepEqual(
    addPurging(twice, { type: 'node.purged', body: {} }),
    nothingPurged,
    'of an earlier node of that name',
  )
})

test('however many rows name a node, no more of them are kept than one commit holds', () => {
  const many = Array.from({ length: 700 }, (_, at) => step('certificate', { ...certificate(at), serial: `c${at}` }))
  const { rows, first, counts, endMs } = addSteps(survey(...many), many)
  assert.deepEqual([rows, first.length, counts.certificates, endMs], [1400, 500, 1400, 699])
})

test('a plan says in words what goes and what stays', () => {
  const two = survey(step('certificate', certificate(1)), step('certificate', certificate(2)))
  assert.match(purgeWords(two), /observations, 2 certificates; its epoch and 0 keys stay under a hash of its name$/)
})
