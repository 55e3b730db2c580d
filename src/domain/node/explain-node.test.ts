import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationWords } from '#domain/core/in-words.ts'
import { explainNode, type ExplainFacts } from './explain-node.ts'
import { conditionNames, membershipKinds, type Node, type Recovery, type RepairEvidence } from '#domain/core/node.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import {
  domainRow,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  repair,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'

const explain = (node: Node, changes: Partial<ExplainFacts> = {}): string =>
  explainNode({
    node,
    profile: profileRow('gpu-cloud').value,
    domain: domainRow().value,
    channelOpen: true,
    lastSeenMs: noonMs - 2 * minute,
    nowMs: noonMs,
    ...changes,
  }).join('\n')

test('an active node is explained with its channel, its certificate and why nothing runs there', () => {
  assert.equal(
    explain(nodeRow('active').value),
    [
      'Active since 2030-01-01T11:00:00.000Z (1 h).',
      'Its channel is open.',
      'Its certificate is good until 2030-01-02T11:00:00.000Z; its agent renews it by 2030-01-02T03:00:00.000Z.',
      'Not schedulable: not assigned to a vCluster (maintenance mode).',
    ].join('\n'),
  )
})

test('each state says since when, by whom, and which command changes it', () => {
  assert.match(
    explain(nodeRow('registered').value),
    /by operator:carol; no certificate.*\n.*token create --node gpu-001/,
  )
  assert.match(
    explain(nodeRow('enrolled').value),
    /not been used yet.*\n.*after 10 min.*\n.*token create --node gpu-001/,
  )
  assert.match(
    explain(nodeRow('inactive').value),
    /no channel for 5 min\. It was last seen 2 min ago.*\n.*when it connects/,
  )
  assert.match(explain(nodeRow('quarantined').value), /by operator:carol: odd traffic.*\n.*node release gpu-001/)
  assert.match(explain(nodeRow('revoked').value), /by operator:carol: stolen.*\n.*node enroll gpu-001/)
})

test('the explanation of an active node without a channel says when it becomes inactive', () => {
  const said = explain(nodeRow('active').value, { channelOpen: false, lastSeenMs: null })
  assert.match(said, /It has no channel\. It has never been seen\. It becomes inactive .* 5 min/)
})

test('how a lapsed node comes back follows its profile', () => {
  const lapsed = nodeRow('inactive').value
  const under = (name: string, node: Node = lapsed) => explain(node, { profile: profileRow(name).value })
  assert.match(
    under('hpc-diskless'),
    /has to join again\. It joins automatically when a machine shows its hardware identity/,
  )
  assert.match(
    under('mesh-paas'),
    /asks one person to approve its return; so far nobody did: muster node approve gpu-001/,
  )
  const once = { ...lapsed, approvals: [{ by: 'operator:bob', atMs: noonMs }] }
  assert.match(under('high-assurance', once), /asks 2 people .* so far operator:bob did/)
  assert.match(under('mesh-paas', once), /Its return is approved: it becomes active when it connects/)
})

test('the explanation of an inactive node whose certificate expired says how to join, after approval where asked', () => {
  const late = { nowMs: noonMs + 100 * hour }
  const lapsed = nodeRow('inactive').value
  assert.match(explain(lapsed, late), /certificate has expired.*token create --node gpu-001/)
  const approved = { ...lapsed, approvals: [{ by: 'operator:bob', atMs: noonMs }] }
  const mesh = { ...late, profile: profileRow('mesh-paas').value }
  assert.match(
    explain(approved, mesh),
    /approved, but its certificate has expired: it has to join again: muster token create/,
  )
})

test('a released node joins anew, after approval where the profile asks', () => {
  const released = nodeRow('inactive', { membership: { ...memberships.inactive, slots: null } }).value
  assert.match(explain(released), /released from quarantine.*\n.*token create --node gpu-001/)
  assert.match(explain(released, { profile: profileRow('mesh-paas').value }), /muster node approve gpu-001/)
})

test('a pending, an overdue and an expired certificate are distinguished', () => {
  const active = (changes: Partial<Parameters<typeof slots>[0]>) =>
    nodeRow('active', { membership: { ...memberships.active, slots: slots(changes) } }).value
  assert.match(explain(active({ pending: slot('a2') })), /renewed certificate .* waits for its first use/)
  assert.match(explain(active({}), { nowMs: noonMs + 20 * hour }), /renewal is overdue/)
  assert.match(explain(active({}), { nowMs: noonMs + 24 * hour }), /certificate expired at/)
})

test('drains are explained with the command that goes on', () => {
  assert.match(explain(nodeRow('active', { drain: 'draining' }).value), /node drain gpu-001 --done/)
  assert.match(
    explain(nodeRow('active', { drain: 'draining', allocations: 2 }).value),
    /released the 2 allocations on it: muster allocation list --node gpu-001; to stop draining/,
  )
  assert.match(explain(nodeRow('active', { drain: 'drained' }).value), /node undrain gpu-001/)
  assert.match(explain(nodeRow('active', { assignment: 'vc1' }).value), /may be placed on it \(vCluster vc1\)/)
})

test('every state and condition under every profile is explained, without holes', () => {
  for (const kind of membershipKinds) {
    for (const profile of shippedProfiles) {
      for (const name of conditionNames) {
        const condition = { name, sinceMs: noonMs - minute, reason: 'a reason', evidence: { source: '192.0.2.1' } }
        const said = explain(nodeRow(kind, { conditions: [condition] }).value, { profile })
        const sentence = `${name} since 2030-01-01T11:59:00.000Z, 1 min: a reason (source 192.0.2.1). `
        assert.ok(said.includes(sentence), said)
        assert.doesNotMatch(said, /undefined|null|NaN|\.\.|\[object/)
      }
    }
  }
})

const late = noonMs + 100 * hour

test('a node that recovers without an operator is not advised to use a token', () => {
  const lapsed = nodeRow('inactive', { recovery: keyRecovery() }).value
  const active = nodeRow('active', { recovery: keyRecovery() }).value
  assert.match(explain(lapsed, { nowMs: late }), /certificate has expired: it recovers automatically/)
  assert.match(explain(active, { nowMs: late }), /certificate expired at .*; it recovers automatically/)
  const conditions = [{ name: 'cert_expired' as const, sinceMs: noonMs, reason: 'r', evidence: {} }]
  assert.doesNotMatch(explain({ ...lapsed, conditions }, { nowMs: late }), /token create/)
})

test('the obstacle to a recovery is explained with the command that removes it', () => {
  const said = (recovery: Recovery, profile = 'gpu-cloud', changes: Partial<Node> = {}) =>
    explain(nodeRow('inactive', { recovery, ...changes }).value, { nowMs: late, profile: profileRow(profile).value })
  const spent = keyRecovery({ recoveredAtMs: [late - 3, late - 2, late - 1] })
  assert.match(said(spent), /recovered 3 times in 1 d, as often as .* allows; .*muster node approve gpu-001/)
  const denied = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  assert.match(said(denied), /operator:bob said no to its recovery; .*muster node approve gpu-001/)
  assert.match(said(keyRecovery(), 'mesh-paas'), /asks one person to approve its return/)
  const approvals = [{ by: 'operator:bob', atMs: noonMs }]
  assert.match(said(keyRecovery(), 'mesh-paas', { approvals }), /it recovers automatically .*; that is approved/)
})

test('a denial of recoveries is explained for a healthy node, too', () => {
  const recovery = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  assert.match(explain(nodeRow('active', { recovery }).value), /may not recover: operator:bob denied it/)
})

test('each step of a repair is explained with the next one', () => {
  const said = (changes: Partial<Node>, nowMs = noonMs) => explain(nodeRow('quarantined', changes).value, { nowMs })
  assert.match(
    said({ repair: repair() }),
    /operator:carol made a repair bundle .*muster agent repair --bundle-file FILE/,
  )
  assert.match(
    said({ repair: repair() }, noonMs + 2 * hour),
    /bundle .* expired at .*\n.*muster node repair-bundle gpu-001/,
  )
  const usedBy = { spki: 'key-of-a1', epoch: 4, atMs: noonMs }
  const membership = { ...memberships.quarantined, slots: slots() }
  const repaired = (evidence: RepairEvidence | null) => said({ membership, repair: repair({ usedBy, evidence }) })
  assert.match(repaired(null), /has not shown its evidence yet/)
  const checks = [{ name: 'clock', ok: false, detail: 'wrong by 1 h' }]
  assert.match(repaired({ passed: false, atMs: noonMs, checks }), /has not passed \(clock: wrong by 1 h\)/)
  assert.match(repaired({ passed: true, atMs: noonMs, checks: [] }), /has passed\. .*muster node release gpu-001/)
  const released = nodeRow('inactive', { repair: repair({ usedBy }) }).value
  const diskless = { profile: profileRow('hpc-diskless').value }
  assert.match(explain(released, diskless), /repaired and released .*\n.*becomes active when it connects/)
})

test('durations are said in at most two units', () => {
  const said = [0, 999, 1000, 90_000, hour, 25 * hour, 24 * hour + minute, -5].map(durationWords)
  const expected = ['less than 1 s', 'less than 1 s', '1 s', '1 min 30 s', '1 h', '1 d 1 h', '1 d', 'less than 1 s']
  assert.deepEqual(said, expected)
})

test('a condition that only a later release knows is shown, with where to ask', () => {
  const condition = { name: 'of_a_later_release', sinceMs: noonMs - hour, reason: 'seen', evidence: {} }
  const node = { ...nodeRow('active').value, conditions: [condition] } as unknown as Node
  assert.match(explain(node), /of_a_later_release since .*: seen\. A later release raised it: a plane of that release/)
})
