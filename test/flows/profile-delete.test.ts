// The end of a profile, by the commands people use.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Change } from '#domain/core/change.ts'
import { deleteProfile } from '#plane/settings/delete-profile.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { operator } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

test('a profile is deleted once nothing uses it, and its name is free again', async (t) => {
  const plane = await setUpCli(t)
  const muster = async (...words: string[]) => {
    const said = await plane.muster(...words)
    assert.equal(said.code, exitCodes.ok, said.err)
    return said.out
  }
  const refused = async (words: RegExp, exit: number = exitCodes.refused) => {
    const said = await plane.muster('profile', 'delete', 'short')
    assert.equal(said.code, exit, said.err)
    assert.match(said.err, words)
  }
  await muster('profile', 'create', 'short', '--from', 'mesh-paas', 'certificate.lifetimeMs=1h')
  await muster('node', 'enroll', 'gpu-001', '--profile', 'short')
  await muster('token', 'create', '--profile', 'short')
  await muster('domain', 'set', 'defaultProfile=short')
  await refused(/PROFILE_IN_USE[\s\S]*1 node under it[\s\S]*1 unused token for it[\s\S]*domain's default/)

  await muster('domain', 'set', 'defaultProfile=gpu-cloud')
  const [token] = JSON.parse(await muster('token', 'list', '-o', 'json')).tokens
  await muster('token', 'revoke', token.id)
  await refused(/1 node under it, .*muster node list --profile short/)
  await muster('node', 'revoke', 'gpu-001', '--reason', 'gone')
  assert.match(await muster('profile', 'delete', 'short'), /profile short deleted/)

  assert.doesNotMatch(await muster('profile', 'list'), /short/)
  await refused(/PROFILE_NOT_FOUND/, exitCodes.notFound)
  for (const words of [
    ['profile', 'show', 'short'],
    ['profile', 'set', 'short', 'certificate.lifetimeMs=2h'],
    ['profile', 'create', 'other', '--from', 'short'],
    ['node', 'enroll', 'gpu-002', '--profile', 'short'],
    ['token', 'create', '--profile', 'short'],
  ])
    assert.equal((await plane.muster(...words)).code, exitCodes.notFound, words.join(' '))
  assert.equal((await plane.muster('domain', 'set', 'defaultProfile=short')).code, exitCodes.refused)
  assert.match(await muster('node', 'show', 'gpu-001'), /revoked/, 'a revoked node keeps its tombstone')

  assert.match(await muster('profile', 'create', 'short', '--from', 'gpu-cloud'), /lifetimeMs +24h/)
  const types = (await plane.journal('profile.deleted')).map(({ body }) => body)
  assert.deepEqual(types, [{ profile: 'short' }])
})

test('a node that is registered meanwhile keeps its profile', async (t) => {
  const plane = await setUpOperatorServer(t)
  let first = true
  const commit = async (change: Change) => {
    const isDeletion = change.entries.some(({ type }) => type === 'profile.deleted')
    if (isDeletion && first) {
      first = false
      const asked = { id: 'gpu-001', profile: 'mesh-paas', macs: [], bmcSerial: null }
      assert.equal((await registerNode(plane, asked, operator)).kind, 'committed')
    }
    return plane.store.commit(change)
  }
  const store = new Proxy(plane.store, {
    get: (target, name) => (name === 'commit' ? commit : Reflect.get(target, name)),
  })
  const done = await deleteProfile({ ...plane, store }, 'mesh-paas', operator)
  assert.equal(done.kind === 'refused' && done.code, 'PROFILE_IN_USE')
  assert.equal((await plane.store.get('profile', 'mesh-paas'))?.value.deletedAtMs, null)
})
