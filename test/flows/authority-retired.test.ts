// The key of an issuing CA that has retired: it signs revocation lists, and there is no way to sign anything else with it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { signerFrom } from '#plane/authority/ca-signer.ts'
import type { KeyName } from '#plane/keys/key-custody.ts'
import { dropEndedListKeys, findListSigner } from '#plane/authority/list-signer.ts'
import { day, leafOrder, operator, setUp, setUpWithFiles, startMs, type Setup } from './authority-setup.ts'

const signedBy = async (authority: Authority): Promise<string> => (await authority.sign(leafOrder(startMs, day))).issuer

/** The roles its key is kept under. */
const rolesOf = async (setup: Setup, issuer: string): Promise<KeyName['role'][]> =>
  (await setup.custody())
    .names()
    .filter(({ role, id }) => id === issuer && role !== 'responder')
    .map(({ role }) => role)
    .sort()

const signsLists = async (setup: Setup, issuer: string): Promise<boolean> => {
  const row = (await setup.store.get('issuer', issuer))?.value ?? assert.fail()
  return findListSigner(await setup.custody(), row) !== null
}

/** With an issuer that has been replaced. */
const rotated = async (t: TestContext, on: (t: TestContext) => Promise<Setup> = setUp) => {
  const setup = await on(t)
  const authority = await setup.open()
  const retired = await signedBy(authority)
  assert.deepEqual(await rolesOf(setup, retired), ['issuing'])
  assert.equal(await authority.rotate(operator), undefined)
  return { setup, authority, retired }
}

/** Back to where it was after the commit that retired it: nothing has been done with the key yet. */
const putBack = async (setup: Setup, issuer: string): Promise<void> => {
  const custody = await setup.custody()
  await custody.keep({ role: 'issuing', id: issuer }, custody.find({ role: 'retired', id: issuer }) ?? assert.fail())
}

test('the key of a retired issuer is under a role of its own, which no certificate is signed by', async (t) => {
  const { setup, authority, retired } = await rotated(t)
  assert.deepEqual(await rolesOf(setup, retired), ['retired'])
  assert.ok(await signsLists(setup, retired))
  const row = (await setup.store.get('issuer', retired))?.value ?? assert.fail()
  assert.equal(signerFrom(await setup.custody(), row), null)
  for (const one of [authority, await setup.open()]) assert.notEqual(await signedBy(one), retired)
})

test('where no other key is left, a retired one signs neither leaves nor authorities nor what the plane presents', async (t) => {
  const { setup, retired } = await rotated(t, setUpWithFiles)
  const keys = path.join(setup.folder, 'keys')
  for (const name of fs.readdirSync(keys)) if (/^(root|issuing)\./.test(name)) fs.rmSync(path.join(keys, name))
  const authority = await setup.open({ serverNames: { dns: ['other.example.test'], ip: [] } })
  await assert.rejects(signedBy(authority), /no issuing CA can sign now/)
  assert.deepEqual(authority.view().server_certificate.names, ['localhost', '127.0.0.1', '::1'])
  const refusal = await authority.rotate(operator)
  assert.ok(refusal !== undefined && isRefusal(refusal) && refusal.code === 'CA_ROOT_OFFLINE')
  assert.ok(await signsLists(setup, retired))
})

test('a crash on the way to its new role loses nothing, and leaves it under one role after the next start', async (t) => {
  const { setup, retired } = await rotated(t)
  const custody = await setup.custody()
  for (const reached of ['nothing yet', 'kept for lists'] as const) {
    await putBack(setup, retired)
    if (reached === 'nothing yet') await custody.drop({ role: 'retired', id: retired })
    assert.ok(await signsLists(setup, retired), reached)
    assert.notEqual(await signedBy(await setup.open()), retired)
    assert.deepEqual(await rolesOf(setup, retired), ['retired'], reached)
    assert.ok(await signsLists(setup, retired), reached)
  }
})

test('retired keys that nothing in the store has retired are dropped at the next start', async (t) => {
  const { setup, authority, retired } = await rotated(t)
  const [custody, serving] = [await setup.custody(), await signedBy(authority)]
  const pem = custody.find({ role: 'issuing', id: serving }) ?? assert.fail()
  for (const id of ['00aa', serving]) await custody.keep({ role: 'retired', id }, pem)
  await setup.open()
  assert.deepEqual(await rolesOf(setup, '00aa'), [])
  assert.deepEqual(await rolesOf(setup, serving), ['issuing'])
  assert.deepEqual(await rolesOf(setup, retired), ['retired'])
})

test('of a withdrawn issuer no key is left, whether it was serving or had retired, and what a crash leaves signs no list', async (t) => {
  const { setup, authority, retired } = await rotated(t)
  const [serving, custody] = [await signedBy(authority), await setup.custody()]
  const pem = custody.find({ role: 'retired', id: retired }) ?? assert.fail()
  for (const issuer of [retired, serving]) {
    const outcome = await authority.withdraw({ issuer, reason: 'stolen', by: operator, publish: () => {} })
    assert.ok(!isRefusal(outcome))
    assert.deepEqual(await rolesOf(setup, issuer), [])
  }
  const { store, clock } = setup
  const finish = {
    'the same call again': () =>
      authority.withdraw({ issuer: retired, reason: 'stolen', by: operator, publish: () => {} }),
    'a start': () => setup.open(),
    'the upkeep': async () => dropEndedListKeys({ custody: await setup.custody(), store, nowMs: clock.nowMs() }),
  }
  for (const [what, run] of Object.entries(finish)) {
    await (await setup.custody()).keep({ role: 'retired', id: retired }, pem)
    assert.equal(await signsLists(setup, retired), false)
    await run()
    assert.deepEqual(await rolesOf(setup, retired), [], what)
  }
})
