import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  bearerRecovery,
  domainRow,
  hour,
  keyRecovery,
  memberships,
  nodeRow,
  noonMs,
  profileRow,
  repair,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'
import { decideFirstUse } from './first-use.ts'
import type { ConditionName, Membership, Node } from '#domain/core/node.ts'

const use = (kind: Membership['kind'], changes: Partial<Node> = {}, serial = 'a1', profile = 'gpu-cloud') =>
  decideFirstUse({
    node: nodeRow(kind, changes),
    principal: {
      kind: 'node',
      id: 'gpu-001',
      epoch: 4,
      credential: { by: 'certificate', issuer: 'ca1', serial, spki: `key-of-${serial}` },
      notAfterMs: noonMs + hour,
      evidenceOnly: kind === 'quarantined',
      source: '192.0.2.8',
    },
    profile: profileRow(profile),
    domain: domainRow(),
    by: alice,
    nowMs: noonMs,
  })

const condition = (name: ConditionName) => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })
const renewing = { membership: { ...memberships.active, slots: slots({ pending: slot('b2') }) } }

test('the first use of a recovered identity ends the story of its failure, under its correlation', () => {
  const { change, node } = expectDecided(use('enrolled', { recovery: keyRecovery({ episode: 'story-9' }) }))
  assert.deepEqual([change.entries[0].type, change.entries[0].correlation], ['node.confirmed', 'story-9'])
  assert.equal(node.recovery?.episode, null)
})

test('a rotated token is confirmed by the first use of the certificate it came with, and by no other', () => {
  const recovery = bearerRecovery('h2', 'h1')
  assert.deepEqual(expectDecided(use('active', { ...renewing, recovery }, 'b2')).node.recovery, bearerRecovery('h2'))
  const away = { membership: { ...memberships.inactive, slots: renewing.membership.slots }, recovery }
  assert.deepEqual(expectDecided(use('inactive', away)).node.recovery, recovery)
})

test('a certificate that was running out is forgotten when its successor is used', () => {
  const conditions = [condition('cert_expiring')]
  assert.deepEqual(expectDecided(use('active', { ...renewing, conditions }, 'b2')).node.conditions, [])
  assert.deepEqual(expectDecided(use('inactive', { conditions })).node.conditions, conditions)
})

test('a repaired node may show its evidence and changes nothing; any other in quarantine is refused', () => {
  const membership = { ...memberships.quarantined, slots: slots() }
  assert.equal(use('quarantined', { membership }).kind, 'nothing-new')
  expectRefused(use('quarantined', { membership }, 'zz'), 'NODE_QUARANTINED')
  expectRefused(use('quarantined'), 'NODE_QUARANTINED')
})

test('a node released after its repair comes back by its certificate, whatever its profile says of a lapse, and once', () => {
  const usedBy = { spki: 'key-of-a1', epoch: 4, atMs: noonMs }
  for (const profile of ['gpu-cloud', 'hpc-diskless', 'mesh-paas']) {
    const { node } = expectDecided(use('inactive', { repair: repair({ usedBy }) }, 'a1', profile))
    assert.deepEqual([node.membership.kind, node.repair], ['active', null])
  }
  const before = { repair: repair({ usedBy: { ...usedBy, epoch: 3 } }) }
  expectRefused(use('inactive', before, 'a1', 'hpc-diskless'), 'REJOIN_REQUIRED')
})
