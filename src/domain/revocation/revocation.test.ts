import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { decideDecommission, decideRevoke, type RevokeFacts } from './revocation.ts'
import {
  alice,
  domainRow,
  hour,
  memberships,
  minute,
  nodeRow,
  noonMs,
  row,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'

const facts: RevokeFacts = {
  node: nodeRow('active', {
    membership: { ...memberships.active, slots: slots({ pending: slot('a2') }) },
    conditions: [{ name: 'disk_full', sinceMs: noonMs, reason: 'r', evidence: {} }],
    drain: 'draining',
    assignment: 'vc1',
  }),
  reason: 'compromised',
  domain: domainRow(),
  certificates: [],
  bans: [],
  by: alice,
  nowMs: noonMs,
}

test('revocation leaves a tombstone with its reason and nothing that could be used', () => {
  const { node } = expectDecided(decideRevoke(facts))
  assert.deepEqual(node.membership, { kind: 'revoked', sinceMs: noonMs, reason: 'compromised', by: 'operator:alice' })
  assert.equal(node.epoch, 4)
  assert.deepEqual([node.conditions, node.approvals, node.drain, node.assignment], [[], [], 'none', null])
})

test('the journal has exactly the fields of seed 002 for a revocation', () => {
  const [revoked] = expectDecided(decideRevoke(facts)).change.entries
  assert.equal(revoked.type, 'host.revoked')
  assert.equal(revoked.epoch, 4)
  assert.deepEqual(revoked.body, {
    host_id: 'gpu-001',
    revoked_by: 'operator:alice',
    reason: 'compromised',
    timestamp: '2030-01-01T12:00:00.000Z',
  })
})

test('the journal names the recovery key that a revocation bans', () => {
  const credential = { kind: 'key', spki: 'a'.repeat(64), publicKey: '', registeredAtMs: 1 } as const
  const recovery = { credential, recoveredAtMs: [], denied: null, episode: null }
  const node = { ...facts.node, value: { ...facts.node.value, recovery } }
  const [revoked] = expectDecided(decideRevoke({ ...facts, node })).change.entries
  assert.equal(revoked.body['recovery_key'], `SHA256:${'a'.repeat(64)}`)
})

test('the epoch is denied and every key of it banned; a key banned before is relied on, not written', () => {
  const before = { spki: 'key-of-a1', why: 'weak', atMs: 1 }
  const bans = [
    { spki: 'key-of-a1', row: row(before, 2) },
    { spki: 'key-of-a2', row: null },
  ]
  const verdict = expectDecided(decideRevoke({ ...facts, bans }))
  assert.deepEqual(writesOf(verdict, 'denial'), [
    {
      kind: 'epoch',
      node: 'gpu-001',
      epoch: 4,
      untilMs: noonMs + 23 * hour + 5 * minute,
      atMs: noonMs,
      why: 'revoked: compromised',
      reason: 'unspecified',
    },
  ])
  assert.deepEqual(writesOf(verdict, 'key-ban'), [{ spki: 'key-of-a2', why: 'compromised', atMs: noonMs }])
  assert.deepEqual(readsOf(verdict), [
    'node/gpu-001@7',
    'domain/domain@3',
    'key-ban/key-of-a1@2',
    'key-ban/key-of-a2@0',
  ])
})

test('a key is banned even when no ban was looked up before', () => {
  const bans = writesOf(expectDecided(decideRevoke(facts)), 'key-ban') as { spki: string }[]
  assert.deepEqual(
    bans.map(({ spki }) => spki),
    ['key-of-a1', 'key-of-a2'],
  )
})

test('certificates known besides the slots lengthen the denial and lose their keys too', () => {
  const certificates = [slot('old', { notAfterMs: noonMs + 90 * hour })]
  const verdict = expectDecided(decideRevoke({ ...facts, certificates }))
  const [denial] = writesOf(verdict, 'denial') as { untilMs: number }[]
  assert.equal(denial?.untilMs, noonMs + 90 * hour + 5 * minute)
  assert.equal(writesOf(verdict, 'key-ban').length, 3)
})

test('every state can be revoked, once; a denial that stands is not shortened', () => {
  for (const kind of ['registered', 'enrolled', 'inactive', 'quarantined'] as const) {
    const verdict = expectDecided(decideRevoke({ ...facts, node: nodeRow(kind) }))
    const certified = kind === 'enrolled' || kind === 'inactive'
    assert.equal(writesOf(verdict, 'denial').length, certified ? 1 : 0)
  }
  expectRefused(decideRevoke({ ...facts, node: nodeRow('revoked') }), 'NODE_REVOKED')
})

test('P3: decommissioning a node with allocations needs force, and says what force would do; an idle one does not', () => {
  const { reason: _, ...given } = facts
  const open = { ...given, allocations: 1, force: false }
  const said = /^gpu-001 is in use: 1 allocation running; .* take the allocations .* gpu-001 --force$/
  expectRefused(decideDecommission(open), 'NODE_STATE_CONFLICT', said)
  for (const allowed of [
    { ...open, force: true },
    { ...open, allocations: 0 },
  ]) {
    const [entry] = expectDecided(decideDecommission(allowed)).change.entries
    assert.equal(entry.body['reason'], 'decommissioned')
  }
  expectRefused(decideDecommission({ ...open, node: nodeRow('revoked') }), 'NODE_REVOKED')
})

test('verifiers learn that a decommissioned node has ceased to operate, and nothing else of the reason', () => {
  const { reason: _reason, ...known } = facts
  const decommissioned = decideDecommission({ ...known, force: true, allocations: 0 })
  const [denial] = writesOf(expectDecided(decommissioned), 'denial') as { reason: string }[]
  assert.equal(denial?.reason, 'cessation-of-operation')
})

test('the reason an operator names for verifiers is in the denial and in the journal, beside the words', () => {
  const verdict = expectDecided(decideRevoke({ ...facts, reasonCode: 'key-compromise' }))
  const [denial] = writesOf(verdict, 'denial') as { reason: string; why: string }[]
  assert.deepEqual([denial?.reason, denial?.why], ['key-compromise', 'revoked: compromised'])
  const [{ body }] = verdict.change.entries
  assert.deepEqual([body['reason'], body['reason_code']], ['compromised', 'key-compromise'])
})

test('a revocation after a quarantine gives its reason to the denial that is there, and leaves since when and until when', () => {
  const former = { kind: 'epoch', node: 'gpu-001', epoch: 4, atMs: noonMs - hour, untilMs: noonMs + hour } as const
  const formerDenial = row({ ...former, why: 'quarantined: odd traffic', reason: 'unspecified' as const }, 9)
  const quarantined = { ...facts, node: nodeRow('quarantined'), formerDenial }
  const named = expectDecided(decideRevoke({ ...quarantined, reasonCode: 'key-compromise' }))
  assert.deepEqual(writesOf(named, 'denial'), [{ ...former, why: 'revoked: compromised', reason: 'key-compromise' }])
  assert.ok(readsOf(named).includes('denial/epoch/4/gpu-001@9'))
  assert.deepEqual(writesOf(expectDecided(decideRevoke(quarantined)), 'denial'), [])
})
