// The keys that sign tasks: made once, rotated, withdrawn, lost, and followed by another replica. On SQLite and PostgreSQL.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { signerStepMs } from '#domain/tasks/signers.ts'
import { verifySignature } from '#pki/keys.ts'
import { openFeed } from '#plane/core/feed.ts'
import { nothingElsewhere, type KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { openTaskSigners, type TaskSignersHere } from '#plane/tasks/task-signers.ts'
import { verifiersStatement } from '#plane/tasks/verifiers-statement.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { parseStatement } from '#wire/core/statement.ts'
import type { SignerListAnswer } from '#wire/tasks/signer-api.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { eventually } from '../process/eventually.ts'
import { operator, setUp, type Setup } from './authority-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

/** A plane on the store, with a feed and a view of the keys of its own. */
const start = async (setup: Setup) => {
  const { store, clock } = setup
  const feed = openFeed()
  const core = { store, feed, clock, random: systemRandom, timers: manualTimers(clock), log: silentLog }
  const custody = await setup.custody()
  const parts = { custody, settings: await settingsNow(store, feed), beforeFirst: () => Promise.resolve() }
  return { feed, custody, signers: await openTaskSigners(core, parts) }
}

const task = {
  ...{ domain: 'test.example', node: 'gpu-001', epoch: 1, id: `task_${'a'.repeat(26)}`, type: 'run', parameters: {} },
  ...{ issued_ms: 1, expires_ms: 2, counter: 1 },
}

/** Whether the row names a signer whose public key verifies what this plane signs. */
const isSignedByRow = async (signers: TaskSignersHere): Promise<boolean> => {
  const parsed = parseStatement('task', await signers.sign(task))
  const row = await signers.stored()
  const signer = row?.value.signers.find(({ key }) => key === parsed?.value.key)
  assert.ok(parsed !== null && signer !== undefined)
  return verifySignature(Buffer.from(signer.spki, 'base64'), parsed.signed, parsed.signature)
}

const statesOf = async (signers: TaskSignersHere): Promise<readonly string[]> =>
  ((await signers.stored())?.value.signers ?? []).map(({ version, state }) => `${version} ${state.kind}`).sort()

test('the first signer is made once, however many planes start, and signs with Ed25519', async (t) => {
  const setup = await setUp(t)
  const [one, other] = await Promise.all([start(setup), start(setup)])
  const again = await start(setup)
  assert.equal((await setup.journal('signer.created')).length, 1)
  const key = again.signers.key()
  assert.ok(key !== null)
  for (const { signers } of [one, other, again]) {
    assert.equal(signers.key(), key)
    assert.equal(await isSignedByRow(signers), true)
  }
  assert.equal(again.custody.names().filter(({ role }) => role === 'task-signer').length, 1)
})

test('a rotation is carried on by time alone, and the key of a retired signer is dropped', async (t) => {
  const setup = await setUp(t)
  const { signers, custody } = await start(setup)
  const first = signers.key()
  const rotated = await signers.rotate('usual', operator)
  assert.ok(!isRefusal(rotated))
  assert.equal(signers.key(), first, 'no host has the next one yet')
  const again = await signers.rotate('usual', operator)
  assert.ok(isRefusal(again) && again.code === 'SIGNER_ROTATING')
  assert.equal(custody.names().filter(({ role }) => role === 'task-signer').length, 2, 'the refused one left no key')
  for (const states of [
    ['1 grace', '2 signing'],
    ['1 retired', '2 signing'],
  ]) {
    setup.clock.advance(signerStepMs + 3_600_000)
    // Only a leader goes on, and a replica that has just started may not lead yet.
    await eventually(`the signers to be ${states.join(', ')}`, async () => {
      await signers.upkeep.run(setup.store)
      return (await statesOf(signers)).join() === states.join()
    })
    assert.equal(await isSignedByRow(signers), true)
  }
  assert.deepEqual(
    custody.names().flatMap(({ role, id }) => (role === 'task-signer' ? [id] : [])),
    [signers.key()],
  )
})

test('a withdrawal is in the next statement, and the private key is gone', async (t) => {
  const setup = await setUp(t)
  const { signers, custody } = await start(setup)
  const recovery = await setup.openRecovery()
  const key = signers.key() ?? ''
  const numbers: number[] = []
  signers.onNumber((number) => numbers.push(number))
  const asked = { domain: 'test.example', node: 'gpu-001', epoch: 3, nonce: 'n'.repeat(22), nowMs: setup.clock.nowMs() }
  const statement = async () => {
    const row = await signers.stored()
    assert.ok(row !== null)
    const parsed = parseStatement('verifiers', verifiersStatement(recovery, row.value, asked))
    assert.ok(parsed !== null)
    const [spki] = parsed.value.statement_keys
    assert.ok(verifySignature(Buffer.from(spki ?? '', 'base64'), parsed.signed, parsed.signature))
    return parsed.value
  }
  const before = await statement()
  assert.deepEqual([before.verifiers.map((one) => one.key), before.withdrawn], [[key], []])
  assert.deepEqual([before.node, before.epoch, before.nonce], ['gpu-001', 3, asked.nonce])
  assert.equal(before.expires_ms - before.issued_ms, 24 * 3_600_000)

  assert.ok(!isRefusal(await signers.withdraw({ key, reason: 'stolen' }, operator)))
  const after = await statement()
  assert.deepEqual(after.withdrawn, [key])
  assert.deepEqual(
    after.verifiers.map((one) => one.key),
    [signers.key()],
  )
  assert.ok(after.number > before.number)
  assert.deepEqual(numbers, [after.number])
  assert.equal(custody.find({ role: 'task-signer', id: key }), null)
  assert.equal(await isSignedByRow(signers), true)
  const repeated = await signers.withdraw({ key, reason: 'stolen' }, operator)
  assert.equal(repeated.kind, 'unchanged')
  assert.equal((await setup.journal('signer.withdrawn')).length, 1)
})

test('a signer is withdrawn and carried on in an upgrade that has a place for signers, and not made in one that has none', async (t) => {
  const setup = await setUp(t)
  const unfinished = { schema: 6, newest: 7, waitsFor: ['another replica'], failure: null }
  const upgrading = { ...setup, store: { ...setup.store, unfinishedUpgrade: () => unfinished } }
  const early = await start(upgrading)
  const refused = await early.signers.withdraw({ key: 'none', reason: 'stolen' }, operator)
  assert.equal(isRefusal(refused) && refused.code, 'UPGRADE_UNFINISHED')
  await early.signers.upkeep.run(upgrading.store)
  assert.equal(await early.signers.stored(), null)

  await start(setup)
  const { signers } = await start(upgrading)
  const key = signers.key() ?? ''
  assert.ok(!isRefusal(await signers.withdraw({ key, reason: 'stolen' }, operator)))
  assert.ok(!isRefusal(await signers.rotate('usual', operator)))
  setup.clock.advance(signerStepMs + 3_600_000)
  await eventually('the next one to sign', async () => {
    await signers.upkeep.run(upgrading.store)
    return (await statesOf(signers)).some((state) => state === '3 signing')
  })
})

test('another replica signs with the new key as soon as it hears of it, and never with a withdrawn one', async (t) => {
  const setup = await setUp(t)
  const here = await start(setup)
  const there = await start(setup)
  here.feed.subscribe('task signers', (committed) => there.feed.publish({ ...committed, origin: 'elsewhere' }))
  const key = here.signers.key() ?? ''
  assert.ok(!isRefusal(await here.signers.withdraw({ key, reason: 'stolen' }, operator)))
  assert.notEqual(there.signers.key(), key)
  await eventually('it to have the new key', () => there.signers.key() === here.signers.key())
  assert.equal(await isSignedByRow(there.signers), true)
})

test('a plane whose signer is lost starts, says so, signs nothing, and goes on with another one when told to', async (t) => {
  const setup = await setUp(t)
  const before = await start(setup)
  const key = before.signers.key() ?? ''
  await before.custody.drop({ role: 'task-signer', id: key })
  const { signers } = await start(setup)
  assert.equal(signers.key(), null)
  assert.throws(() => signers.sign(task), /no task can be signed/)
  assert.match(signers.warnings().join(), new RegExp(`${key}.*muster signer rotate --now`))
  assert.ok(!isRefusal(await signers.rotate('now', operator)))
  assert.equal(await isSignedByRow(signers), true)
  assert.deepEqual(signers.warnings(), [])
})

test('a key that no row names is set aside at a start, and one that a row names comes back', async (t) => {
  const setup = await setUp(t)
  const { signers } = await start(setup)
  const named = { role: 'task-signer', id: signers.key() ?? '' } as const
  const unnamed = { role: 'task-signer', id: 'ab'.repeat(20) } as const
  const custody = await setup.custody()
  await custody.keep(unnamed, custody.find(named) ?? '')
  await (await setup.custody()).setAside(named)
  const again = await start(setup)
  assert.deepEqual([again.custody.has(unnamed), again.custody.has(named)], [false, true])
  assert.equal(await isSignedByRow(again.signers), true)
})

test('the number goes above what nodes have from before a restore, once', async (t) => {
  const setup = await setUp(t)
  let reported = 0
  // What nodes report is written now and then; here it is there at once.
  const store = new Proxy(setup.store, {
    get: (target, name) =>
      name === 'countTaskVerifiers' ? async () => new Map([[reported, 2]]) : Reflect.get(target, name),
  })
  const { signers } = await start({ ...setup, store })
  const numberNow = async () => (await signers.stored())?.value.number ?? 0
  setup.clock.advance(60_000)
  reported = (await numberNow()) + 70
  await eventually('it to be surpassed', async () => {
    await signers.upkeep.run(store)
    return (await numberNow()) > reported
  })
  assert.equal((await setup.journal('signer.renumbered')).length, 1)
  reported = (await numberNow()) + 1
  await signers.upkeep.run(store)
  assert.equal((await setup.journal('signer.renumbered')).length, 1, 'the next look is later')
})

test('operators list, rotate and withdraw signers, each with a plan before harm', async (t) => {
  const setup = await setUpOperatorServer(t)
  const { call } = setup
  const listed = async () => (await call('viewer', 'GET', '/v1/task-signers')).body as unknown as SignerListAnswer
  const [first] = (await listed()).signers
  assert.ok(first !== undefined)
  assert.deepEqual([first.state, first.version, first.nodes], ['signing', 1, 0])
  const refused = await call('operator', 'POST', '/v1/task-signers/rotate', { how: 'now' })
  assert.equal(refused.body.code, 'ROLE_FORBIDDEN')

  const rotate = { action: { kind: 'rotate-signer' } }
  assert.equal((await call('operator', 'POST', '/v1/plans', rotate)).body.code, 'ROLE_FORBIDDEN')
  const plan = (await call('platform-admin', 'POST', '/v1/plans', rotate)).body
  assert.deepEqual(
    (plan['effects'] as { subject: string }[]).map(({ subject }) => subject),
    [`signer ${first.key}`, 'signer', 'nodes'],
  )
  assert.equal((await listed()).signers.length, 1, 'a plan does nothing')
  const applied = await call('platform-admin', 'POST', `/v1/plans/${String(plan['id'])}/apply`, {})
  assert.equal(applied.status, 200)
  const second = (await listed()).signers.find(({ state }) => state === 'signing')
  assert.ok(second !== undefined && second.key !== first.key)

  const withdrawal = { key: second.key, reason: 'its backup was stolen' }
  const harm = (
    await call('platform-admin', 'POST', '/v1/plans', { action: { kind: 'withdraw-signer', ...withdrawal } })
  ).body
  const unknown = { key: 'f'.repeat(40), reason: 'x' }
  assert.equal(
    (await call('platform-admin', 'POST', '/v1/task-signers/withdraw', unknown)).body.code,
    'SIGNER_NOT_FOUND',
  )
  assert.equal((await call('platform-admin', 'POST', '/v1/task-signers/withdraw', withdrawal)).status, 200)
  const stale = await call('platform-admin', 'POST', `/v1/plans/${String(harm['id'])}/apply`, {})
  assert.equal(stale.body.code, 'PLAN_STALE')
  const third = await listed()
  assert.deepEqual(third.signers.map(({ state }) => state).sort(), ['grace', 'signing', 'withdrawn'])
  assert.equal(third.signers.find(({ state }) => state === 'withdrawn')?.reason, 'its backup was stolen')

  const back = (await call('platform-admin', 'POST', '/v1/task-signers/rotate', { how: 'back' })).body
  const signing = (back as unknown as SignerListAnswer).signers.find(({ state }) => state === 'signing')
  assert.equal(signing?.key, first.key)
  const nothing = await call('platform-admin', 'POST', '/v1/task-signers/rotate', { how: 'sideways' })
  assert.equal(nothing.body.code, 'REQUEST_INVALID')
  const bundle = (await call('viewer', 'GET', '/v1/ca/bundle')).body
  assert.match(String(bundle['statement_keys']), /BEGIN PUBLIC KEY/)
})

test('a withdrawal waits a second for a token that does not answer, and is made with a key of this plane then', async (t) => {
  const setup = await setUp(t)
  const { store, clock } = setup
  const stolen = (await start(setup)).signers.key() ?? assert.fail()
  const feed = openFeed()
  const timers = manualTimers(clock)
  const never: KeysElsewhere = { ...nothingElsewhere, make: () => Promise.withResolvers<never>().promise }
  const signers = await openTaskSigners(
    { store, feed, clock, random: systemRandom, timers, log: silentLog },
    {
      custody: { ...(await setup.custody()), elsewhere: never },
      keyPlace: 'transit',
      settings: await settingsNow(store, feed),
      beforeFirst: () => Promise.resolve(),
    },
  )
  let isDone = false
  const withdrawn = signers.withdraw({ key: stolen, reason: 'stolen' }, operator).finally(() => (isDone = true))
  await eventually('the withdrawal to be made', () => {
    if (!isDone && timers.waiting() > 0) timers.advance(1000)
    return isDone
  })
  assert.ok(!isRefusal(await withdrawn))
  assert.notEqual(signers.key(), stolen)
  assert.equal(await isSignedByRow(signers), true)
})
