import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  alice,
  domainRow,
  holder,
  keyRecovery,
  nodeRow,
  noonMs,
  profileRow,
  slots,
  memberships,
} from '../../../test/fakes/sample-rows.ts'
import { decideDuplicate, type DuplicateFacts } from './duplicate.ts'
import type { ConditionName, Membership, Node } from '#domain/core/node.ts'

const held = (kind: Membership['kind'], changes: Partial<Node> = {}) =>
  nodeRow(kind, { recovery: keyRecovery(), ...changes })

const decide = (changes: Partial<DuplicateFacts> = {}) =>
  decideDuplicate({
    node: held('active'),
    profile: profileRow('gpu-cloud'),
    domain: domainRow(),
    sign: 'old-counter',
    claimant: holder(2),
    claimantLive: false,
    otherHolder: null,
    lastSeen: null,
    by: { ...alice, actor: 'node:gpu-001' },
    nowMs: noonMs,
    ...changes,
  })

const condition = (name: ConditionName) => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })

const written = (verdict: ReturnType<typeof decide>): Node => {
  const change = 'change' in verdict ? verdict.change : null
  const write = change?.writes.find(({ put }) => put === 'node')
  return write?.put === 'node' ? write.value : assert.fail('no node was written')
}

test('of two holders the one with the live channel stays, the other is refused, and both are named', () => {
  const verdict = decide({ otherHolder: holder(1) })
  assert.ok(verdict.kind === 'claimant-refused')
  assert.equal(verdict.refusal.code, 'DUPLICATE_IDENTITY')
  const node = written(verdict)
  assert.equal(node.membership.kind, 'active')
  assert.deepEqual(
    node.conditions.map(({ name }) => name),
    ['duplicate_identity'],
  )
  assert.deepEqual(node.conditions[0]?.evidence, {
    claimant: '192.0.2.2, instance 22222222, agent 0.1.0',
    claimant_hardware: 'machine 22222222, BMC serial BMC-2, 02:00:00:00:00:02',
    claimant_serial: 'a1',
    holder: '192.0.2.1, instance 11111111, agent 0.1.0',
    holder_hardware: 'machine 11111111, BMC serial BMC-1, 02:00:00:00:00:01',
    holder_serial: 'a1',
  })
  assert.deepEqual(
    verdict.change?.entries.map(({ type }) => type),
    ['node.second_holder'],
  )
})

test('what stands already is not written again', () => {
  const node = held('active', { conditions: [condition('duplicate_identity')] })
  const verdict = decide({ node, otherHolder: holder(1) })
  assert.ok(verdict.kind === 'claimant-refused')
  assert.equal(verdict.change, null)
})

test('with no channel live both are fenced: no certificate, no way to recover, the evidence kept', () => {
  const verdict = decide({ lastSeen: holder(1, { machine: null }) })
  assert.ok(verdict.kind === 'fenced')
  assert.equal(verdict.refusal.code, 'DUPLICATE_IDENTITY')
  const node = written(verdict)
  assert.ok(node.membership.kind === 'quarantined')
  assert.deepEqual([node.membership.by, node.membership.slots, node.recovery], ['system:lineage', null, null])
  assert.match(String(node.conditions[0]?.evidence['holder']), /192\.0\.2\.1.*not connected/)
  assert.deepEqual(
    verdict.change.entries.map(({ type, actor }) => [type, actor]),
    [
      ['node.second_holder', 'node:gpu-001'],
      ['node.quarantined', 'system:lineage'],
    ],
  )
  assert.ok(verdict.change.writes.some(({ put }) => put === 'denial'))
})

test('where the profile says so both are fenced, though one of them is live', () => {
  const profile = profileRow('high-assurance')
  assert.equal(decide({ profile, otherHolder: holder(1) }).kind, 'fenced')
  assert.equal(decide({ profile, claimantLive: true }).kind, 'fenced')
  assert.equal(decide({ profile, sign: 'second-instance', otherHolder: holder(1) }).kind, 'fenced')
})

test('a holder with the live channel stays, although another was given its successor', () => {
  const verdict = decide({ sign: 'second-successor', claimantLive: true })
  assert.ok(verdict.kind === 'claimant-stays')
  assert.match(verdict.suspicion?.reason ?? '', /asked to renew/)
})

test('a node that reported a lost write is no copy of itself, while no other holder is live', () => {
  const node = held('inactive', { conditions: [condition('not_persisted')] })
  assert.equal(decide({ node }).kind, 'claimant-stays')
  assert.equal(decide({ node, otherHolder: holder(1) }).kind, 'claimant-refused')
})

test('a second channel is no sign of a copy where the open one names no process', () => {
  const profile = profileRow('high-assurance')
  const sign = 'second-instance'
  assert.equal(decide({ profile, sign, otherHolder: holder(1, { instance: null }) }).kind, 'claimant-stays')
  assert.equal(decide({ profile, sign }).kind, 'claimant-stays')
})

test('an older agent is refused and never fenced', () => {
  const claimant = holder(2, { instance: null })
  const profile = profileRow('high-assurance')
  assert.equal(decide({ claimant }).kind, 'claimant-refused')
  for (const more of [{}, { profile }]) {
    const verdict = decide({ ...more, claimant, sign: 'second-instance', otherHolder: holder(1) })
    assert.equal(verdict.kind, 'claimant-refused')
  }
})

test('what is fenced or gone is not fenced again', () => {
  for (const node of [held('revoked'), held('registered')]) {
    const verdict = decide({ node })
    assert.ok(verdict.kind === 'claimant-refused')
    assert.equal(verdict.change, null)
  }
  const repaired = held('quarantined', { membership: { ...memberships.quarantined, slots: slots() } })
  assert.equal(written(decide({ node: repaired })).membership.kind, 'quarantined')
  const second = { node: repaired, sign: 'second-instance' } as const
  assert.equal(decide({ ...second, otherHolder: holder(1) }).kind, 'claimant-refused')
  assert.equal(decide(second).kind, 'claimant-stays')
})

test('evidence is bounded however much a machine reports', () => {
  const macs = Array.from({ length: 64 }, (_, index) => `02:00:00:00:00:${index}`)
  const loud = holder(2, { macs, agentVersion: 'x'.repeat(300), bmcSerial: 'y'.repeat(300) })
  const node = written(decide({ claimant: loud, otherHolder: loud }))
  const evidence = Object.values(node.conditions[0]?.evidence ?? {})
  assert.ok(evidence.length <= 8)
  assert.ok(evidence.every((value) => String(value).length <= 128))
})
