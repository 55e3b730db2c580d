// The task signer with its key in a token: agents of every release know what it signs, a task whose signer is away stays queued, and there is an alert for
// that until the token is back.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test, type TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { signingOf } from '#domain/tasks/signers.ts'
import { keyTypeOfSpki, verifySignature } from '#pki/keys.ts'
import { Pkcs11Unavailable } from '#platform/pkcs11.ts'
import { systemTimers } from '#platform/timers.ts'
import { watchKeys } from '#plane/alerts/watch-keys.ts'
import { openUnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { dispatchNext } from '#plane/tasks/dispatch.ts'
import { openTaskSigners } from '#plane/tasks/task-signers.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { operator } from '../flows/authority-setup.ts'
import { principalOf, setUpTasks } from '../flows/tasks-setup.ts'
import { cleanup } from '../process/cleanup.ts'
import { softTokens } from './soft-token.ts'

/** Null after the test has been skipped. A second replica, whose signers have their keys in the token. */
const inToken = async (t: TestContext) => {
  const tokens = softTokens(t, 'tasks')
  if (tokens === null) return null
  const pace = manualClock(0)
  const elsewhere = openKeysElsewhere(
    { module: tokens.module, vault: null, pin: tokens.pinFile, credentialsFolder: null },
    { clock: pace, timers: systemTimers },
  )
  cleanup(t, () => elsewhere.close())
  const plane = await setUpTasks(t, 'gpu-001')
  const custody = { ...(await plane.custody()), elsewhere }
  const settings = await settingsNow(plane.store, plane.feed)
  const keyPlace = { token: 'tasks', serial: null }
  const beforeFirst = (): Promise<void> => Promise.resolve()
  const signers = await openTaskSigners(plane.core, { custody, keyPlace, settings, beforeFirst })
  const alerts = await openUnresolvedAlerts(plane.store, plane.feed)
  const watch = watchKeys(plane.core, { custody, alerts })
  const opened = async (): Promise<readonly string[]> => {
    await watch.run(plane.store)
    return [...alerts.all()].filter(({ kind }) => kind === 'key_unavailable').map(({ reason }) => reason)
  }
  return { tokens, pace, plane, signers, custody, opened }
}

test('a task signer in a token is Ed25519, and what it signs is verified with the key that hosts have', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { signers, plane, custody, tokens } = made
  const rotated = await signers.rotate('now', operator)
  assert.ok(!isRefusal(rotated))
  const signing = signingOf(rotated.signers) ?? assert.fail()
  assert.match(
    custody.find({ role: 'task-signer', id: signing.key }) ?? '',
    /^pkcs11:token=tasks;object=muster-task-signer-/,
  )
  const spki = Buffer.from(signing.spki, 'base64')
  assert.equal(keyTypeOfSpki(spki), 'ed25519')
  await plane.queue('gpu-001')
  const dispatched = await dispatchNext(plane.core, signers, principalOf('gpu-001'))
  assert.ok(dispatched !== null && dispatched !== 'busy')
  const parsed = parseStatement('task', dispatched.envelope) ?? assert.fail()
  assert.deepEqual([parsed.value.id, parsed.value.key], [dispatched.task.id, signing.key])
  assert.ok(verifySignature(spki, parsed.signed, parsed.signature))
  // It is sent again to each new session: the token is not asked for that.
  tokens.pull()
  const { key: _, ...value } = parsed.value
  assert.equal(await signers.sign(value), dispatched.envelope)
})

test('a task whose signer is away stays queued, an alert says so, and it is dispatched once the token is back', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { signers, plane, tokens, pace, opened } = made
  await signers.rotate('now', operator)
  const { id } = await plane.queue('gpu-001')
  const dispatch = () => dispatchNext(plane.core, signers, principalOf('gpu-001'))
  assert.deepEqual(await opened(), [])
  tokens.pull()
  assert.equal(await dispatch(), 'busy')
  assert.equal((await plane.show(id)).state, 'queued')
  assert.equal(signers.isResting(), true)
  const [reason] = await opened()
  assert.match(reason ?? '', /cannot use keys in the token tasks: the token tasks is not there.*Insert it/)
  pace.advance(30_000)
  assert.equal((await opened()).length, 1, 'it is looked for again, and is still away')
  tokens.putBack()
  pace.advance(30_000)
  assert.deepEqual(await opened(), [])
  plane.timers.advance(1000)
  const dispatched = await dispatch()
  assert.ok(dispatched !== null && dispatched !== 'busy')
  assert.equal(dispatched.task.id, id)
})

test('a withdrawal waits for no token: the next key is made here', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { signers, tokens, custody } = made
  await signers.rotate('now', operator)
  const stolen = signers.key() ?? assert.fail()
  tokens.pull()
  await assert.rejects(async () => signers.rotate('now', operator), Pkcs11Unavailable)
  const outcome = await signers.withdraw({ key: stolen, reason: 'stolen' }, operator)
  assert.ok(!isRefusal(outcome) && signers.key() !== stolen)
  assert.match(custody.find({ role: 'task-signer', id: signers.key() ?? '' }) ?? '', /^-----BEGIN PRIVATE KEY-----/)
})

test('a PIN that was refused is said by an alert until its file has changed', async (t) => {
  const made = await inToken(t)
  if (made === null) return
  const { signers, tokens, opened } = made
  fs.writeFileSync(tokens.pinFile, '000000')
  await assert.rejects(async () => signers.rotate('now', operator), Pkcs11Unavailable)
  assert.match((await opened()).join(), /the token tasks refuses the PIN/)
  fs.writeFileSync(tokens.pinFile, tokens.pin)
  // That look finds no such key, and so that the token is well.
  assert.deepEqual(await opened(), [])
})
