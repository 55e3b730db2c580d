import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noKeyClaims } from '#domain/identity/key-claim.ts'
import { expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  bearerRecovery,
  bob,
  domainRow,
  doubtedDomainRow,
  haltedDomainRow,
  holder,
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
import type { ConditionName, Membership, Node, Recovery } from '#domain/core/node.ts'
import { decideRecover, type RecoverFacts } from './recovery.ts'
import { decideRecoveryWaits } from './recovery-waits.ts'
import { refuse } from '#domain/core/refusal.ts'

const recoverable = (kind: Membership['kind'], changes: Partial<Node> = {}) =>
  nodeRow(kind, { recovery: keyRecovery(), counter: 5, ...changes })

const key = (spkiHash: string) => ({ kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash }) as const
const counter = (value: number) => ({ domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: value })

const facts = (changes: Partial<RecoverFacts> = {}): RecoverFacts => ({
  node: recoverable('inactive'),
  profile: profileRow('gpu-cloud'),
  domain: domainRow(),
  credential: { by: 'key', spki: 'recovery-key' },
  counter: counter(5),
  key: key('new-key'),
  keyBan: null,
  keyClaims: noKeyClaims,
  credentialBan: null,
  claimant: holder(1, { serial: null }),
  otherHolder: null,
  lastSeen: null,
  failure: {
    class: 'cert_expired',
    code: 'CLIENT_CERT_EXPIRED',
    sinceMs: noonMs - hour,
    certNotAfterMs: noonMs - hour,
  },
  register: null,
  withdrawn: [],
  orderId: 'o1',
  by: { ...alice, actor: 'node:gpu-001' },
  nowMs: noonMs,
  ...changes,
})

const decide = (changes: Partial<RecoverFacts> = {}) => decideRecover(facts(changes))

test('a node that proves its recovery key gets an order in a new epoch, whether it was active, lapsed or just enrolled', () => {
  for (const kind of ['enrolled', 'active', 'inactive'] as const) {
    const verdict = decide({ node: recoverable(kind) })
    assert.equal(verdict.kind, 'admitted')
    assert.deepEqual(verdict.kind === 'admitted' && [verdict.epoch, verdict.order.for.kind], [5, 'node'])
  }
})

test('revoked nodes never recover', () => {
  expectRefused(decide({ node: recoverable('revoked') }), 'NODE_REVOKED')
  const token = { credential: { by: 'repair', hash: 'hash-of-bundle' } } as const
  expectRefused(decide({ node: recoverable('revoked', { repair: repair() }), ...token }), 'NODE_REVOKED')
})

test('another key, another token, or none registered is an unknown credential', () => {
  expectRefused(decide({ credential: { by: 'key', spki: 'another' } }), 'RECOVERY_UNKNOWN')
  expectRefused(decide({ node: recoverable('inactive', { recovery: null }) }), 'RECOVERY_UNKNOWN')
  expectRefused(decide({ credential: { by: 'bearer', hash: 'recovery-key' } }), 'RECOVERY_UNKNOWN')
})

test('a bearer token is good with its hash, and the one before it until the newer is known to have arrived', () => {
  const by = (hash: string, recovery: Recovery) =>
    decide({ node: recoverable('inactive', { recovery }), credential: { by: 'bearer', hash } }).kind
  assert.equal(by('h2', bearerRecovery('h2', 'h1')), 'admitted')
  assert.equal(by('h1', bearerRecovery('h2', 'h1')), 'admitted')
  assert.equal(by('h1', bearerRecovery('h2')), 'refused')
})

test('the same request again gets the same certificate, whatever the counter and the budget say by then', () => {
  const again = {
    node: recoverable('enrolled', { recovery: keyRecovery({ recoveredAtMs: [noonMs, noonMs, noonMs] }) }),
    key: key('key-of-a1'),
    counter: counter(4),
    otherHolder: holder(2),
  }
  const verdict = decide(again)
  assert.equal(verdict.kind === 'repeat' && verdict.slot.serial, 'a1')
  // Whoever has only seen the request go by has not got the credential.
  expectRefused(decide({ ...again, credential: { by: 'key', spki: 'another' } }), 'RECOVERY_UNKNOWN')
})

test('an expired certificate is no answer to a repeated request', () => {
  const old = slots({ current: slot('a1', { notAfterMs: noonMs }) })
  const node = recoverable('enrolled', { membership: { ...memberships.enrolled, slots: old } })
  assert.equal(decide({ node, key: key('key-of-a1') }).kind, 'admitted')
})

test('a quarantined node recovers with a repair bundle only', () => {
  const node = recoverable('quarantined', { repair: repair() })
  const bundle = { by: 'repair', hash: 'hash-of-bundle' } as const
  expectRefused(decide({ node }), 'NODE_QUARANTINED')
  assert.equal(decide({ node, credential: bundle, counter: null }).kind, 'admitted')
  // Whatever the copy did to the counter meanwhile: an operator has said who is who.
  assert.equal(decide({ node, credential: bundle, counter: counter(1), otherHolder: holder(2) }).kind, 'admitted')
})

test('a repair bundle works once, for an hour, for its node, and in quarantine', () => {
  const by = (hash: string, node: Node, nowMs = noonMs) =>
    decide({ node: { value: node, version: 7 }, credential: { by: 'repair', hash }, counter: null, nowMs })
  const waiting = recoverable('quarantined', { repair: repair() }).value
  const spent = { ...waiting, repair: repair({ usedBy: { spki: 'key-of-a1', epoch: 5, atMs: noonMs } }) }
  expectRefused(by('another', waiting), 'REPAIR_TOKEN_INVALID')
  expectRefused(by('hash-of-bundle', waiting, noonMs + hour), 'REPAIR_TOKEN_INVALID', /expired/)
  expectRefused(by('hash-of-bundle', spent), 'REPAIR_TOKEN_INVALID', /used/)
  expectRefused(by('hash-of-bundle', { ...waiting, membership: memberships.inactive }), 'REPAIR_TOKEN_INVALID')
})

test('a repair that lost its answer is answered again, and only to the key it was used by', () => {
  const usedBy = { spki: 'key-of-a1', epoch: 4, atMs: noonMs }
  const membership = { ...memberships.quarantined, slots: slots() }
  const node = recoverable('quarantined', { membership, repair: repair({ usedBy }) })
  const credential = { by: 'repair', hash: 'hash-of-bundle' } as const
  assert.equal(decide({ node, credential, key: key('key-of-a1') }).kind, 'repeat')
  expectRefused(decide({ node, credential, key: key('another') }), 'REPAIR_TOKEN_INVALID')
})

test('a counter is needed, of this node, and not an older one', () => {
  expectRefused(decide({ counter: null }), 'REQUEST_INVALID', /counter/)
  assert.equal(decide({ counter: counter(4) }).kind, 'duplicate')
  assert.equal(decide({ counter: counter(6) }).kind, 'admitted')
})

test('a successor that was never used may never have arrived: the previous counter is accepted, and no older one', () => {
  const lost = slots({ current: slot('a1', { notAfterMs: noonMs }), pending: slot('b2', { notAfterMs: noonMs }) })
  const node = recoverable('inactive', { membership: { ...memberships.inactive, slots: lost } })
  assert.equal(decide({ node, counter: counter(4) }).kind, 'admitted')
  assert.equal(decide({ node, counter: counter(3) }).kind, 'duplicate')
  assert.equal(decide({ node, counter: counter(4), otherHolder: holder(2) }).kind, 'duplicate')
})

test('a request repeated after its answer has expired is exempt from the counter', () => {
  const late = slots({ current: slot('a1', { notAfterMs: noonMs }) })
  const node = recoverable('enrolled', { membership: { ...memberships.enrolled, slots: late } })
  assert.equal(decide({ node, counter: counter(4), key: key('key-of-a1') }).kind, 'admitted')
  assert.equal(decide({ node, counter: counter(4) }).kind, 'duplicate')
})

test('a node that could not keep what it was given recovers with its older counter, unless another holder is live', () => {
  const conditions = [{ name: 'not_persisted' as ConditionName, sinceMs: noonMs, reason: 'r', evidence: {} }]
  const node = recoverable('inactive', { conditions })
  assert.equal(decide({ node, counter: counter(3) }).kind, 'admitted')
  assert.equal(decide({ node, counter: counter(3), otherHolder: holder(2) }).kind, 'duplicate')
})

test('a caller that asks while another process answers on its channel is the second holder', () => {
  const verdict = decide({ otherHolder: holder(2) })
  assert.equal(verdict.kind === 'duplicate' && verdict.verdict.kind, 'claimant-refused')
})

test('recoveries are counted in the window of the profile, and one approval lets one more through', () => {
  const times = (...recoveredAtMs: number[]) => recoverable('inactive', { recovery: keyRecovery({ recoveredAtMs }) })
  const recent = [noonMs - 3 * hour, noonMs - 2 * hour, noonMs - hour]
  assert.equal(decide({ node: times(noonMs - 24 * hour, ...recent.slice(1)) }).kind, 'admitted')
  expectRefused(decide({ node: times(...recent) }), 'RECOVERY_BUDGET_SPENT', /3 recoveries, 3 are allowed/)
  const approved = { ...times(...recent).value, approvals: [{ by: 'operator:bob', atMs: noonMs }] }
  assert.equal(decide({ node: { value: approved, version: 8 } }).kind, 'admitted')
})

test('under approve as many operators decide as the profile asks, and no node recovers under deny or after a denial', () => {
  const approvals = [alice, bob].map(({ actor }) => ({ by: actor, atMs: noonMs }))
  const under = (name: string, people: number) =>
    decide({ profile: profileRow(name), node: recoverable('inactive', { approvals: approvals.slice(0, people) }) })
  expectRefused(under('mesh-paas', 0), 'APPROVAL_REQUIRED')
  assert.equal(under('mesh-paas', 1).kind, 'admitted')
  expectRefused(under('high-assurance', 1), 'APPROVAL_REQUIRED')
  assert.equal(under('high-assurance', 2).kind, 'admitted')
  expectRefused(under('hpc-diskless', 2), 'RECOVERY_DENIED', /hpc-diskless/)
  const denied = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  expectRefused(decide({ node: recoverable('inactive', { recovery: denied }) }), 'RECOVERY_DENIED', /operator:bob/)
})

test('recovery is no way around the people who decide about a return', () => {
  const comeback = { by: 'approve', people: 1 } as const
  const profile = profileRow('gpu-cloud', { comeback })
  expectRefused(decide({ profile }), 'APPROVAL_REQUIRED')
  assert.equal(decide({ profile, node: recoverable('active') }).kind, 'admitted')
})

const enrolledOn = (...macs: string[]) => ({ reportedHardware: { macs, bmcSerial: null, epoch: 4 } })

test('R-010: a machine on other hardware than was enrolled recovers only with an approval; nothing known refuses no machine', () => {
  const [first] = holder(1).macs
  const moved = recoverable('inactive', enrolledOn('02:00:00:00:00:09'))
  assert.equal(decide({ node: recoverable('inactive', enrolledOn(first ?? '')) }).kind, 'admitted')
  expectRefused(decide({ node: moved }), 'APPROVAL_REQUIRED', /other hardware/)
  expectRefused(decide({ node: moved, profile: profileRow('mesh-paas') }), 'APPROVAL_REQUIRED', /other hardware/)
  const approvals = [{ by: 'operator:bob', atMs: noonMs }]
  assert.equal(decide({ node: recoverable('inactive', { ...moved.value, approvals }) }).kind, 'admitted')
  // Of an earlier epoch: a plane of the release before has started this one.
  const earlier = { reportedHardware: { ...enrolledOn('02:00:00:00:00:09').reportedHardware, epoch: 3 } }
  assert.equal(decide({ node: recoverable('inactive', earlier) }).kind, 'admitted')
  const bundle = { credential: { by: 'repair', hash: 'hash-of-bundle' }, counter: null } as const
  const repaired = recoverable('quarantined', { repair: repair(), ...enrolledOn('02:00:00:00:00:09') })
  assert.equal(decide({ node: repaired, ...bundle }).kind, 'admitted')
})

test('banned keys, keys of another type, recovery keys and malformed requests are not certified', () => {
  expectRefused(decide({ key: { kind: 'malformed', why: 'no' } }), 'CSR_INVALID')
  expectRefused(decide({ keyBan: { value: { spki: 'x', why: 'y', atMs: 0 }, version: 1 } }), 'KEY_BLOCKED')
  expectRefused(decide({ key: { ...key('k'), keyType: 'ed25519' }, profile: nothingButP256 }), 'CSR_INVALID', /p256/)
  expectRefused(decide({ key: key('recovery-key') }), 'CSR_INVALID', /recovery key/)
})

const nothingButP256 = profileRow('gpu-cloud', {
  certificate: { ...profileRow('gpu-cloud').value.certificate, keyTypes: ['p256'] },
})

test('a recovery that waits for people is to be seen, once; other refusals raise nothing', () => {
  const { node, failure, claimant, by } = facts()
  const waits = (code: 'APPROVAL_REQUIRED' | 'RECOVERY_BUDGET_SPENT' | 'RECOVERY_DENIED') =>
    decideRecoveryWaits({ node, failure, claimant, by, nowMs: noonMs, refusal: refuse(code) })
  const raised = expectDecided(waits('RECOVERY_BUDGET_SPENT')).node
  assert.deepEqual(
    raised.conditions.map(({ name }) => name),
    ['needs_approval'],
  )
  assert.equal(waits('RECOVERY_DENIED').kind, 'unchanged')
  const again = { value: raised, version: 8 }
  const refusal = refuse('APPROVAL_REQUIRED')
  assert.equal(decideRecoveryWaits({ node: again, failure, claimant, by, nowMs: noonMs, refusal }).kind, 'unchanged')
})

test('with a store in doubt no node recovers, and no caller is judged a copy', () => {
  expectRefused(decide({ domain: doubtedDomainRow() }), 'STORE_IN_DOUBT')
  expectRefused(decide({ domain: doubtedDomainRow(), counter: counter(1) }), 'STORE_IN_DOUBT')
})

test('while issuance is halted no node recovers and no duplicate is judged; renewals that go on are no recovery', () => {
  for (const renewals of [false, true]) {
    expectRefused(decide({ domain: haltedDomainRow(renewals) }), 'ISSUANCE_HALTED')
    expectRefused(decide({ domain: haltedDomainRow(renewals), counter: counter(1) }), 'ISSUANCE_HALTED')
  }
})

test('L3: a recovery key that was banned with another node recovers no node, and the refusal names the way back', () => {
  const verdict = decide({ credentialBan: { value: { spki: 'x', why: 'y', atMs: 0 }, version: 1 } })
  expectRefused(verdict, 'RECOVERY_DENIED')
  assert.match('detail' in verdict ? String(verdict.detail) : '', /muster token create --node .* --replace/)
})
