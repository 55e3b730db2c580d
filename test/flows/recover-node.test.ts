// Who recovers and who does not: proofs, counters, budgets, tokens, on a real store with a clock that is moved.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { generateKey } from '#pki/keys.ts'
import { changeNode } from '#plane/node/operator-node-actions.ts'
import { issueChallenge } from '#plane/identity/request-proofs.ts'
import { issueRepairBundle } from '#plane/recovery/issue-repair-bundle.ts'
import { proveRecovery } from '#plane/recovery/prove-recovery.ts'
import { openReceipts } from '#plane/revocation/receipts.ts'
import { withdrawIdentity } from '#plane/revocation/withdraw-identity.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { confirmingPeers } from '../fakes/confirming-peers.ts'
import { day, operator } from './authority-setup.ts'
import { codeOf, evidenceOf, newCsr, setUpRecovery, source } from './recovery-setup.ts'

const recoveryOf = (change: Partial<Profile['recovery']>): Partial<Profile> => {
  const [standard] = shippedProfiles
  assert(standard !== undefined)
  return { recovery: { ...standard.recovery, ...change } }
}

test('an expired node recovers by its key: a new epoch, the old one denied, one story from failure to first use', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  setup.clock.advance(2 * day)
  const outcome = await setup.recoverByKey(key, 'n1', counter)
  assert(outcome.kind === 'issued', JSON.stringify(outcome))
  assert.equal(outcome.node.epoch, 2)
  assert.equal(outcome.node.counter, 2)
  assert.ok((await setup.store.denials()).some((denial) => denial.kind === 'epoch' && denial.epoch === 1))
  await setup.firstUse('n1')
  const story = (await setup.entriesOf('story-0001')).map(({ type }) => type)
  assert.deepEqual(story, ['node.recovery_requested', 'node.superseded', 'node.recovered', 'node.confirmed'])
})

test('a reply that was lost is asked for again: the same certificate, counter and token, whatever the counter presented', async (t) => {
  const setup = await setUpRecovery(t)
  const { token, counter } = await setup.recoverable('n1', 'bearer')
  assert(token !== null)
  const csr = newCsr()
  const ask = () => setup.recover({ node: 'n1', counter, csr, credential: { kind: 'bearer', token } })
  const [first, again] = [await ask(), await ask()]
  assert(first.kind === 'issued' && again.kind === 'issued', JSON.stringify([first, again]))
  assert.equal(again.certificate.der, first.certificate.der)
  assert.equal(again.node.epoch, 2)
  assert.notEqual(setup.tokenOf(first), null)
  assert.equal(setup.tokenOf(again), setup.tokenOf(first))
})

test('a hundred at once with one request are one recovery', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const csr = newCsr()
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => setup.recoverByKey(key, 'n1', counter, csr)))
  const given = outcomes.flatMap((outcome) => (outcome.kind === 'issued' ? outcome.certificate.der : []))
  assert.equal(new Set(given).size, 1)
  assert.deepEqual(
    outcomes.filter(({ kind }) => kind === 'refused').filter((refused) => codeOf(refused) !== 'RATE_LIMITED'),
    [],
  )
  assert.equal((await setup.nodeNow('n1')).epoch, 2)
  assert.equal((await setup.journal('node.recovered')).length, 1)
})

test('a hundred at once with keys of their own are copies of one another: at most one epoch, and then a fence', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, at) =>
      setup.recoverByKey(key, 'n1', counter, newCsr(), { evidence: evidenceOf(`i${at}`) }),
    ),
  )
  assert.equal(outcomes.filter(({ kind }) => kind === 'issued').length, 1)
  const node = await setup.nodeNow('n1')
  assert.equal(node.epoch, 2)
  assert.equal(node.membership.kind, 'quarantined')
  assert.equal(node.recovery, null)
})

test('a proof is good for its own request, its own counter and its own purpose', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const csr = newCsr()
  const credential = setup.keyCredential(key, { node: 'n1', csr, counter })
  const rehearsed = setup.keyCredential(key, { node: 'n1', csr: null, counter })
  setup.deps.anonymousBudget.room(source)
  assert.equal(codeOf(await setup.recover({ node: 'n1', counter, csr: newCsr(), credential })), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.recover({ node: 'n1', counter: null, csr, credential })), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.recover({ node: 'n1', counter, csr, credential: rehearsed })), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.recover({ node: 'n1', counter, csr, credential })), 'issued')
})

test('a challenge is ours, for this node, and at most a minute old', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  await setup.recoverable('n2', generateKey('p256'))
  const other = generateKey('p256')
  const nonce = 'n'.repeat(22)
  const value = { domain: 'test.example', node: 'n1', nonce, salt: 's', time_ms: setup.clock.nowMs() }
  const forged = formatStatement('challenge', value, (bytes) => other.sign(bytes))
  const foreign = issueChallenge(setup.deps, { ...setup.deps, domainName: 'other.example' }, { nonce, node: 'n1' })
  const future = issueChallenge(
    { ...setup.deps, clock: { ...setup.clock, nowMs: () => setup.clock.nowMs() + 60_000 } },
    setup.deps,
    { nonce, node: 'n1' },
  )
  const late = setup.challenge('n1')
  const csr = newCsr()
  const withChallenge = async (challenge: string) =>
    codeOf(
      await setup.recover({
        node: 'n1',
        counter,
        csr,
        credential: setup.keyCredential(key, { node: 'n1', csr, counter }, challenge),
      }),
    )
  for (const challenge of [
    forged,
    foreign,
    future,
    setup.challenge('n2'),
    setup.challenge(null),
    late.replace(/.$/, ''),
    'no',
  ]) {
    assert.equal(await withChallenge(challenge), 'CHALLENGE_INVALID')
  }
  setup.clock.advance(60_000)
  const lastMoment = setup.clock.nowMs()
  setup.clock.advance(1)
  assert.equal(await withChallenge(late), 'CHALLENGE_INVALID')
  setup.clock.set(lastMoment)
  assert.equal(await withChallenge(late), 'issued')
})

test('an unknown name, or one without a key, costs as many signature checks as a known one', async (t) => {
  const setup = await setUpRecovery(t)
  const [key, stranger] = [generateKey('p256'), generateKey('p256')]
  const { counter } = await setup.recoverable('n1', key)
  await setup.recoverable('n2', 'bearer')
  let checks = 0
  const { recovery } = setup.deps
  const isOurStatement: typeof recovery.isOurStatement = (...given) => (checks++, recovery.isOurStatement(...given))
  const deps = { ...setup.deps, recovery: { ...recovery, isOurStatement } }
  const proofChecks: number[] = []
  for (const node of ['n1', 'n2', 'nobody']) {
    const csr = newCsr()
    checks = 0
    const attempt = { purpose: 'recover', node, csr, counter } as const
    const credential = setup.keyCredential(stranger, attempt)
    const row = await setup.store.get('node', node)
    const proven = proveRecovery(deps.clock, deps, row, { ...attempt, credential })
    assert.equal('code' in proven && proven.code, 'RECOVERY_UNKNOWN')
    // One is of the challenge.
    proofChecks.push(checks - 1)
  }
  // The key of n1 is checked with itself.
  assert.deepEqual(proofChecks, [0, 1, 1])
})

test('anonymous callers use up their budget before their request is read, and the node is served beyond it', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const stranger = () =>
    setup.recover({ node: 'n1', counter: null, csr: 'not even a request', credential: { kind: 'bearer', token: 'x' } })
  const outcomes: string[] = []
  for (let attempt = 0; attempt < 4; attempt++) {
    const outcome = await stranger()
    outcomes.push(codeOf(outcome))
    // What the listener does with every refusal.
    setup.deps.anonymousBudget.charge(source)
  }
  assert.deepEqual(outcomes, ['RECOVERY_UNKNOWN', 'RECOVERY_UNKNOWN', 'RECOVERY_UNKNOWN', 'RATE_LIMITED'])
  const nobody = await setup.recover({
    node: 'n9',
    counter: null,
    csr: 'x',
    credential: { kind: 'bearer', token: 'x' },
  })
  assert.equal(codeOf(nobody), 'RATE_LIMITED')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'issued')
})

test('a full queue gives a node a retry time', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  while (typeof setup.deps.admission.enter() === 'function');
  const outcome = await setup.recoverByKey(key, 'n1', counter)
  assert(outcome.kind === 'refused')
  assert.equal(outcome.code, 'BUSY')
  assert.ok((outcome.retryAfterMs ?? 0) >= 1000)
})

test('an older counter is a copy: without a connected holder both are fenced, and neither recovers any more', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const evidence = evidenceOf('original')
  const renewal = await setup.renew('n1', { counter, evidence })
  assert(renewal.kind === 'issued', JSON.stringify(renewal))
  await setup.firstUse('n1')
  const copy = await setup.recoverByKey(key, 'n1', counter, newCsr(), { evidence: evidenceOf('copy') })
  assert.equal(codeOf(copy), 'DUPLICATE_IDENTITY')
  const node = await setup.nodeNow('n1')
  assert.equal(node.membership.kind, 'quarantined')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', setup.counterOf(renewal))), 'RECOVERY_UNKNOWN')
  assert.ok((await setup.store.denials()).some((denial) => denial.kind === 'epoch' && denial.epoch === 1))
})

test('a holder that was connected a moment ago is waited for before a copy gets it fenced', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const evidence = evidenceOf('original')
  await setup.renew('n1', { counter, evidence })
  await setup.firstUse('n1')
  setup.live.returning = { evidence, source: '192.0.2.7', serial: 'ab' }
  const copy = await setup.recoverByKey(key, 'n1', counter, newCsr(), { evidence: evidenceOf('copy') })
  assert.equal(codeOf(copy), 'DUPLICATE_IDENTITY')
  assert.equal((await setup.nodeNow('n1')).membership.kind, 'active')
})

test('of two holders the one with the live channel stays, and both are named', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const evidence = evidenceOf('original')
  setup.live.holder = { evidence, source: '192.0.2.7', serial: 'ab' }
  const copy = await setup.recoverByKey(key, 'n1', counter, newCsr(), { evidence: evidenceOf('copy') })
  assert.equal(codeOf(copy), 'DUPLICATE_IDENTITY')
  const node = await setup.nodeNow('n1')
  assert.equal(node.membership.kind, 'active')
  const raised = node.conditions.find(({ name }) => name === 'duplicate_identity')
  assert.match(JSON.stringify(raised?.evidence), /192\.0\.2\.9.*copy.*192\.0\.2\.7.*original/)
})

test('a counter that was never issued, or to another node, is refused; one of a lost key is none at a renewal', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  await setup.recoverable('n1', key)
  const other = await setup.recoverable('n2', generateKey('p256'))
  const forger = generateKey('p256')
  const forged = formatStatement('counter', { domain: 'test.example', node: 'n1', epoch: 1, counter: 9 }, (bytes) =>
    forger.sign(bytes),
  )
  for (const counter of [forged, other.counter, 'nonsense']) {
    assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'REQUEST_INVALID')
    const renewal = await setup.renew('n1', { counter, evidence: evidenceOf('a') })
    assert.equal(codeOf(renewal), counter === forged ? 'issued' : 'REQUEST_INVALID')
  }
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', null)), 'REQUEST_INVALID')
})

test('a bearer token is rotated by a renewal; the one before works until the new certificate is used, and then is dead', async (t) => {
  const setup = await setUpRecovery(t)
  const { token: first, counter } = await setup.recoverable('n1', 'bearer')
  const renewal = await setup.renew('n1', { counter, evidence: evidenceOf('a') })
  assert(renewal.kind === 'issued' && first !== null)
  const second = setup.tokenOf(renewal)
  assert(second !== null && second !== first)
  const registered = (await setup.nodeNow('n1')).recovery?.credential
  assert(registered?.kind === 'bearer')
  assert.deepEqual([registered.hash, registered.former], [sha256Hex(second), sha256Hex(first)])
  await setup.firstUse('n1')
  const recover = (token: string) =>
    setup.recover({
      node: 'n1',
      counter: setup.counterOf(renewal),
      csr: newCsr(),
      credential: { kind: 'bearer', token },
    })
  assert.equal(codeOf(await recover(first)), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await recover(second)), 'issued')
})

test('a repeated renewal has the same certificate, counter and token, and counts once', async (t) => {
  const setup = await setUpRecovery(t)
  const { counter } = await setup.recoverable('n1', 'bearer')
  const csr = newCsr()
  const principal = await setup.principal('n1')
  const call = { csr, counter, recovery: null, issuerRoots: null, evidence: evidenceOf('a') }
  const first = await setup.renew('n1', call)
  assert(first.kind === 'issued')
  const { renewCertificate } = await import('#plane/identity/renew-certificate.ts')
  const again = await renewCertificate(setup.deps, setup.deps, principal, { ...call, correlation: 'again' })
  assert(again.kind === 'issued', JSON.stringify(again))
  assert.equal(again.certificate.der, first.certificate.der)
  assert.equal(setup.tokenOf(again), setup.tokenOf(first))
  assert.equal(again.node.counter, 2)
})

test('so many recoveries in so long: then people are asked, and their yes lets one through', async (t) => {
  const setup = await setUpRecovery(t, recoveryOf({ limit: 2 }))
  const key = generateKey('p256')
  let { counter } = await setup.recoverable('n1', key)
  for (let times = 0; times < 2; times++) {
    const outcome = await setup.recoverByKey(key, 'n1', counter)
    assert(outcome.kind === 'issued', JSON.stringify(outcome))
    counter = setup.counterOf(outcome)
    await setup.firstUse('n1')
  }
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'RECOVERY_BUDGET_SPENT')
  assert.ok((await setup.nodeNow('n1')).conditions.some(({ name }) => name === 'needs_approval'))
  const approved = await changeNode(setup.deps, 'n1', 'approve', operator)
  assert.equal(approved.kind, 'committed', JSON.stringify(approved))
  const third = await setup.recoverByKey(key, 'n1', counter)
  assert(third.kind === 'issued')
  await setup.firstUse('n1')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', setup.counterOf(third))), 'RECOVERY_BUDGET_SPENT')
  setup.clock.advance(2 * day)
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', setup.counterOf(third))), 'issued')
})

test('a machine that recovers over and over, however often its profile allows it, has to wait', async (t) => {
  const setup = await setUpRecovery(t, recoveryOf({ limit: 1000 }))
  const key = generateKey('p256')
  let { counter } = await setup.recoverable('n1', key)
  let outcome = await setup.recoverByKey(key, 'n1', counter)
  for (let times = 1; times < 100 && outcome.kind === 'issued'; times++) {
    counter = setup.counterOf(outcome)
    outcome = await setup.recoverByKey(key, 'n1', counter)
  }
  assert.equal(codeOf(outcome), 'RATE_LIMITED')
  assert.ok((await setup.nodeNow('n1')).epoch <= 62)
})

test('where people decide, a recovery waits for them; where the profile says no, nothing is registered', async (t) => {
  const asked = await setUpRecovery(t, recoveryOf({ mode: 'approve' }))
  const key = generateKey('p256')
  const { counter } = await asked.recoverable('n1', key)
  assert.equal(codeOf(await asked.recoverByKey(key, 'n1', counter)), 'APPROVAL_REQUIRED')
  await changeNode(asked.deps, 'n1', 'approve', operator)
  assert.equal(codeOf(await asked.recoverByKey(key, 'n1', counter)), 'issued')

  const never = await setUpRecovery(t, recoveryOf({ mode: 'deny' }))
  const other = await never.recoverable('n1', key)
  assert.equal((await never.nodeNow('n1')).recovery, null)
  assert.equal(codeOf(await never.recoverByKey(key, 'n1', other.counter)), 'RECOVERY_UNKNOWN')
})

test('a revoked node gets NODE_REVOKED and never recovers; a quarantined one needs an operator', async (t) => {
  const setup = await setUpRecovery(t)
  const channels = {
    openSessions: () => [],
    everySession: async () => [],
    cutOn: async () => 0,
    pauseWhile: <T>(_node: string, run: () => Promise<T>) => run(),
  }
  const peers = confirmingPeers()
  const receipts = openReceipts({ ...setup.deps, timers: systemTimers, log: silentLog }, { channels, peers })
  const withdraw = (id: string, kind: 'revoke' | 'quarantine') =>
    withdrawIdentity(
      setup.deps,
      { channels, peers, receipts },
      id,
      { kind, reason: 'test', reasonCode: 'unspecified' },
      operator,
    )
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  await withdraw('n1', 'quarantine')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'NODE_QUARANTINED')
  await withdraw('n1', 'revoke')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'NODE_REVOKED')
})

test('a renewal whose reply was lost for good is no copy: its holder recovers, with that request or a new one', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const lost = await setup.renew('n1', { counter, evidence: evidenceOf('a') })
  assert(lost.kind === 'issued')
  setup.clock.advance(3 * day)
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'issued')
  // Had the reply reached a second holder, that holder is detected when it connects.
  const other = await setup.recoverByKey(key, 'n1', setup.counterOf(lost), newCsr(), { evidence: evidenceOf('b') })
  assert.equal(codeOf(other), 'DUPLICATE_IDENTITY')
})

test('a recovery whose reply was lost again and again is one story, not a copy', async (t) => {
  const setup = await setUpRecovery(t, recoveryOf({ limit: 10 }))
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const csr = newCsr()
  for (let outage = 0; outage < 3; outage++) {
    setup.clock.advance(2 * day)
    assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter, csr)), 'issued', `outage ${outage}`)
  }
})

test('a rehearsal is the same ceremony: nothing is signed, counted or changed but what is known of it', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const before = await setup.nodeNow('n1')
  const rehearse = (more = {}) => {
    const credential = setup.keyCredential(key, { node: 'n1', csr: null, counter })
    return setup.rehearse({ node: 'n1', credential, counter, ...more })
  }
  assert.deepEqual(await rehearse(), { kind: 'rehearsed', outcome: 'passed', step: null, why: null })
  const after = await setup.nodeNow('n1')
  assert.deepEqual({ ...after, rehearsal: null }, before)
  assert.equal(after.rehearsal?.outcome, 'passed')
  assert.equal((await setup.journal('node.recoverable')).length, 1)
  assert.equal((await setup.store.observation('n1')).rehearsedAtMs, setup.clock.nowMs())
  await rehearse()
  assert.equal((await setup.journal('node.recoverable')).length, 1)
  assert.deepEqual(await rehearse({ diskReserve: false }), {
    ...{ kind: 'rehearsed', outcome: 'failed', step: 'disk', why: 'disk_full' },
  })
  assert.ok((await setup.nodeNow('n1')).conditions.some(({ name }) => name === 'not_recoverable'))
  const proofOfRecovery = setup.keyCredential(key, { node: 'n1', csr: newCsr(), counter })
  assert.equal(codeOf(await setup.rehearse({ node: 'n1', credential: proofOfRecovery, counter })), 'RECOVERY_UNKNOWN')
})

test('a rehearsal of another process than the one that is connected is refused, and says nothing of the node', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const evidence = evidenceOf('original')
  setup.live.holder = { evidence, source: '192.0.2.7', serial: 'ab' }
  const credential = setup.keyCredential(key, { node: 'n1', csr: null, counter })
  const more = { evidence: evidenceOf('copy'), diskReserve: false }
  assert.equal(codeOf(await setup.rehearse({ node: 'n1', credential, counter, ...more })), 'DUPLICATE_IDENTITY')
  const { rehearsal, conditions } = await setup.nodeNow('n1')
  assert.equal(rehearsal, null)
  assert.deepEqual(
    conditions.map(({ name }) => name),
    ['duplicate_identity'],
  )
})

test('L7: a rehearsal that a renewal of the same process overtakes says nothing; of another process it is an alert', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  const conditions = async () => (await setup.nodeNow('n1')).conditions.map(({ name }) => name)
  const rehearse = () => {
    const credential = setup.keyCredential(key, { node: 'n1', csr: null, counter })
    return setup.rehearse({ node: 'n1', credential, counter })
  }
  const { instance } = evidenceOf('a')
  assert.equal((await setup.renew('n1', { counter, evidence: evidenceOf('a') })).kind, 'issued')
  await setup.firstUse('n1')
  const failed = { kind: 'rehearsed', outcome: 'failed', step: 'counter', why: 'DUPLICATE_IDENTITY' }

  // The certificate it came with drains, and the channel with its successor is not open yet.
  setup.live.channelOf = instance
  assert.deepEqual(await rehearse(), failed)
  setup.live.channelOf = null
  setup.live.lastHolder = instance
  assert.deepEqual(await rehearse(), failed)
  assert.deepEqual(await conditions(), [])
  assert.equal((await setup.nodeNow('n1')).rehearsal, null)

  setup.live.lastHolder = evidenceOf('b').instance
  assert.deepEqual(await rehearse(), failed)
  assert.deepEqual((await conditions()).sort(), ['duplicate_identity', 'not_recoverable'])
})

test('with a repair bundle another key is registered, on a challenge for this node or for any, and for no other', async (t) => {
  const setup = await setUpRecovery(t)
  await setup.recoverable('n1', generateKey('p256'))
  const channels = { pauseWhile: <T>(_node: string, run: () => Promise<T>) => run() }
  const issued = await issueRepairBundle(setup.deps, channels, 'n1', 'test', operator)
  assert(issued.kind === 'issued')
  const [csr, key] = [newCsr(), generateKey('p256')]
  const credential = { kind: 'repair', token: issued.secret } as const
  const repair = (register: RecoveryRegistration) =>
    setup.recover({ node: 'n1', counter: null, csr, credential, register })
  assert.equal(codeOf(await repair(setup.registrationOf(key, csr, 'n2'))), 'CHALLENGE_INVALID')
  assert.equal(codeOf(await repair(setup.registrationOf(key, newCsr(), 'n1'))), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await repair(setup.registrationOf(key, csr, 'n1'))), 'issued')
  const { recovery, membership } = await setup.nodeNow('n1')
  assert.equal(membership.kind, 'quarantined')
  assert(recovery?.credential.kind === 'key')
  assert.equal(recovery.credential.publicKey, Buffer.from(key.spki).toString('base64'))
})

test('a recovery key is registered only by its holder, and a bad proof costs no token', async (t) => {
  const setup = await setUpRecovery(t)
  const [key, thief] = [generateKey('p256'), generateKey('p256')]
  const secret = await setup.invite('n1')
  const csr = newCsr()
  const good = setup.registrationOf(key, csr)
  assert(good.kind === 'key')
  const stolen = { ...good, public_key: Buffer.from(thief.spki).toString('base64') }
  assert.equal(codeOf(await setup.enroll(secret, csr, stolen)), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.enroll(secret, newCsr(), good)), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.enroll(secret, csr, { ...good, challenge: 'x' })), 'CHALLENGE_INVALID')
  assert.equal(codeOf(await setup.enroll(secret, csr, setup.registrationOf(key, csr, 'n2'))), 'CHALLENGE_INVALID')
  assert.equal(codeOf(await setup.enroll(secret, csr, setup.registrationOf(key, csr, 'n1'))), 'issued')
  assert.equal((await setup.nodeNow('n1')).recovery?.credential.kind, 'key')
})

test('a caller that proves the recovery key may enroll while the node is active, where another key has to be proven', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const secret = await setup.invite('n1')
  await setup.recoverable('n1', key)
  const csr = newCsr()
  assert.equal(codeOf(await setup.enroll(secret, csr, null)), 'ALREADY_ACTIVE')
  assert.equal(codeOf(await setup.enroll(secret, csr, setup.registrationOf(key, csr))), 'issued')
  assert.equal((await setup.nodeNow('n1')).epoch, 2)
})
