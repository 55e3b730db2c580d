import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { entryTypesOf, expectDecided, readsOf } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  domainRow,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'
import { noHardware, type Membership, type Node, type Recovery, type Rehearsal } from '#domain/core/node.ts'
import { recoverabilityOf } from '#domain/core/recoverability.ts'
import { decideRehearsal, decideRehearsalReported, judgeCounter, type RehearseFacts } from './rehearsal.ts'

const rehearsing = (changes: Partial<Node> = {}, kind: Membership['kind'] = 'active') =>
  nodeRow(kind, { recovery: keyRecovery(), counter: 5, ...changes })

const rehearse = (changes: Partial<RehearseFacts> = {}) =>
  decideRehearsal({
    node: rehearsing(),
    profile: profileRow('gpu-cloud'),
    domain: domainRow(),
    credential: { by: 'key', spki: 'recovery-key' },
    counter: { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: 5 },
    hardware: noHardware,
    diskReserve: true,
    clockSkewMs: minute,
    by: alice,
    nowMs: noonMs,
    ...changes,
  })

const passed: Rehearsal = { outcome: 'passed', sinceMs: noonMs - hour, epoch: 4 }

test('a rehearsal that passes is journaled once an epoch', () => {
  const first = rehearse()
  assert.equal(first.outcome, 'passed')
  assert.ok(first.decided !== null)
  assert.deepEqual(entryTypesOf(first.decided), ['node.recoverable'])
  assert.deepEqual(first.decided.node.rehearsal, { outcome: 'passed', sinceMs: noonMs, epoch: 4 })
  assert.deepEqual(readsOf(first.decided), ['node/gpu-001@7', 'profile/gpu-cloud@5', 'domain/domain@3'])
  assert.equal(rehearse({ node: rehearsing({ rehearsal: passed }) }).decided, null)
  assert.notEqual(rehearse({ node: rehearsing({ rehearsal: { ...passed, epoch: 3 } }) }).decided, null)
})

test('the step that would stop a recovery is named, raises a condition, and a later pass clears it', () => {
  const step = (changes: Partial<RehearseFacts>) => {
    const { step: at, why, outcome } = rehearse(changes)
    return outcome === 'passed' ? 'passed' : `${at}: ${why}`
  }
  const denied = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  const spent = keyRecovery({ recoveredAtMs: [noonMs - 3, noonMs - 2, noonMs - 1] })
  const older = { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: 4 }
  assert.equal(step({ counter: null }), 'counter: DUPLICATE_IDENTITY')
  assert.equal(step({ counter: older }), 'counter: DUPLICATE_IDENTITY')
  const elsewhere = { reportedHardware: { macs: ['02:00:00:00:00:09'], bmcSerial: null, epoch: 4 } }
  assert.equal(step({ node: rehearsing(elsewhere) }), 'budget: APPROVAL_REQUIRED')
  const membership = { ...memberships.quarantined, slots: slots() }
  assert.equal(step({ node: rehearsing({ ...elsewhere, membership }) }), 'passed')
  assert.equal(step({ node: rehearsing({ recovery: denied }) }), 'budget: RECOVERY_DENIED')
  assert.equal(step({ node: rehearsing({ recovery: spent }) }), 'budget: RECOVERY_BUDGET_SPENT')
  assert.equal(step({ profile: profileRow('hpc-diskless') }), 'budget: RECOVERY_DENIED')
  assert.equal(step({ profile: profileRow('mesh-paas') }), 'passed')
  assert.equal(step({ diskReserve: false }), 'disk: disk_full')
  assert.equal(step({ clockSkewMs: -6 * minute }), 'clock: clock_skew')

  const failed = rehearse({ diskReserve: false }).decided
  assert.ok(failed !== null)
  assert.deepEqual(entryTypesOf(failed), ['node.unrecoverable'])
  assert.deepEqual(
    failed.node.conditions.map(({ name }) => name),
    ['not_recoverable'],
  )
  const node = { value: failed.node, version: 8 }
  assert.equal(rehearse({ node, diskReserve: false }).decided, null)
  assert.deepEqual(rehearse({ node }).decided?.node.conditions, [])
  // Another reason is news, and the condition says the newer one.
  assert.match(rehearse({ node, clockSkewMs: hour }).decided?.node.conditions[0]?.reason ?? '', /clock_skew/)
})

test("a caller that cannot prove the node's identity records nothing about it", () => {
  for (const changes of [
    { credential: { by: 'key', spki: 'another' } },
    { credential: { by: 'repair', hash: 'recovery-key' } },
    { node: rehearsing({ recovery: null }) },
    { node: rehearsing({}, 'revoked') },
    { node: rehearsing({}, 'quarantined') },
  ] satisfies Partial<RehearseFacts>[]) {
    const verdict = rehearse(changes)
    assert.deepEqual([verdict.outcome, verdict.step, verdict.decided], ['failed', 'proof', null])
  }
})

test('what only the agent saw is taken from its channel, once', () => {
  const report = (node = rehearsing()) =>
    decideRehearsalReported({
      node,
      step: 'trust',
      why: 'server_tls_untrusted',
      atMs: noonMs,
      by: alice,
      nowMs: noonMs,
    })
  const { node } = expectDecided(report())
  assert.deepEqual(node.rehearsal, {
    outcome: 'failed',
    sinceMs: noonMs,
    epoch: 4,
    step: 'trust',
    why: 'server_tls_untrusted',
  })
  assert.equal(report({ value: node, version: 8 }).kind, 'unchanged')
  assert.equal(report(rehearsing({}, 'revoked')).kind, 'unchanged')
})

test('a report of a failure that comes after a later rehearsal has passed changes nothing', () => {
  const report = (atMs: number, node = rehearsing({ rehearsal: passed })) =>
    decideRehearsalReported({ node, step: 'clock', why: 'clock_skew', atMs, by: alice, nowMs: noonMs }).kind
  assert.equal(report(passed.sinceMs - 1), 'unchanged')
  assert.equal(report(passed.sinceMs + 1), 'decided')
  assert.equal(report(passed.sinceMs - 1, rehearsing({ rehearsal: { ...passed, epoch: 3 } })), 'decided')
})

describe('L7: an old counter at a rehearsal', () => {
  const draining = { slot: slot('a0'), untilMs: noonMs + minute }
  const active = (changes: Parameters<typeof slots>[0] = {}, more: Partial<Node> = {}): Node =>
    rehearsing({ membership: { kind: 'active', sinceMs: noonMs - hour, slots: slots(changes) }, ...more }).value
  const judge = (node: Node, counter: number, { hasCurrent = false, connected = false } = {}) => {
    const presented = { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter }
    return judgeCounter(node, presented, { hasCurrent, connected }, noonMs)
  }

  test('is the holder itself, overtaken by its own renewal, where the sender has the current certificate', () => {
    assert.equal(judge(active(), 4, { hasCurrent: true }), 'overtaken')
    assert.equal(judge(active({ retired: draining }), 3, { hasCurrent: true, connected: true }), 'overtaken')
  })

  test('is the holder itself while its channel with the certificate before is still open', () => {
    assert.equal(judge(active({ retired: draining }), 4, { connected: true }), 'overtaken')
    assert.equal(judge(active({ retired: { ...draining, untilMs: noonMs } }), 4, { connected: true }), 'second-holder')
    assert.equal(judge(active({ retired: draining }), 3, { connected: true }), 'second-holder')
    assert.equal(judge(active(), 4, { connected: true }), 'second-holder')
  })

  test('says nothing before the newer counter was used', () => {
    assert.equal(judge(active({ pending: slot('a2') }), 4), 'good')
    assert.equal(judge(active({ pending: slot('a2') }), 3), 'second-holder')
    assert.equal(judge(rehearsing({}, 'enrolled').value, 4), 'overtaken')
    assert.equal(judge(rehearsing({}, 'enrolled').value, 3), 'second-holder')
  })

  test('is a second holder where another process has used the newer one, also while the certificate before drains', () => {
    assert.equal(judge(active(), 4), 'second-holder')
    assert.equal(judge(active({ retired: draining }), 4), 'second-holder')
    assert.equal(judge(active(), 5), 'good')
  })

  test('is no second holder where the node could not keep the newer one', () => {
    const reason = 'its disk is full'
    const condition = { name: 'not_persisted', sinceMs: noonMs, reason, evidence: {} } as const
    assert.equal(judge(active({}, { conditions: [condition] }), 4), 'not-kept')
  })
})

test('a node is proven recoverable by a rehearsal of its epoch that is not long ago; else it is said why not', () => {
  const profile = profileRow('gpu-cloud').value
  const of = (changes: Partial<Node>, rehearsedAtMs: number | null = null, kind: Membership['kind'] = 'active') =>
    recoverabilityOf(rehearsing(changes, kind).value, profile, rehearsedAtMs, noonMs)
  assert.deepEqual(of({ rehearsal: passed }), { recoverable: true, why: 'rehearsed' })
  const long = { rehearsal: { ...passed, sinceMs: noonMs - 90 * hour } }
  assert.deepEqual(of(long, noonMs - 48 * hour), { recoverable: true, why: 'rehearsed' })
  const why = (...given: Parameters<typeof of>) => of(...given).why
  assert.equal(why(long), 'stale')
  assert.equal(why({}), 'never rehearsed')
  assert.match(why({ rehearsal: { ...passed, epoch: 3 } }), /^not rehearsed in its new epoch yet \(its agent does so/)
  assert.equal(why({ recovery: null }), 'nothing registered')
  const denied: Recovery = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  assert.equal(why({ recovery: denied }), 'recovery denied by an operator')
  assert.equal(
    why({ rehearsal: { ...passed, outcome: 'failed', step: 'disk', why: 'disk_full' } }),
    'failed at disk: disk_full',
  )
  assert.equal(why({}, null, 'quarantined'), 'quarantined')
  const diskless = profileRow('hpc-diskless').value
  assert.equal(recoverabilityOf(rehearsing().value, diskless, null, noonMs).why, 'n/a (rejoins by hardware identity)')
  const strict = { ...profileRow('gpu-cloud').value, recovery: { ...diskless.recovery, mode: 'deny' as const } }
  assert.equal(recoverabilityOf(rehearsing().value, strict, null, noonMs).why, 'recovery denied by profile')
})
