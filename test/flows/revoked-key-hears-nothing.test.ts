// A3: a wait that an operator key began ends with that key, on the replica that revoked it and on every other one, and
// what happened since is not told to it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revokeOperatorKey } from '#plane/operators/change-operator-keys.ts'
import { operator } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const viewerKeyId = async ({ store }: OperatorSetup): Promise<string> => {
  const found = (await store.operatorKeys()).find(({ value }) => value.name === 'the-viewer')
  assert.ok(found !== undefined)
  return found.value.id
}

/** Resolves once the call waits: it has set its own time limit. */
const begun = async (plane: OperatorSetup, waitingBefore: number): Promise<void> => {
  while (plane.timers.waiting() === waitingBefore) await new Promise((resolve) => setImmediate(resolve))
}

for (const [what, path] of [
  ['the journal', (next: string) => `/v1/journal?after=${next}&wait_ms=30000`],
  ['the journal of one node', (next: string) => `/v1/journal?after=${next}&wait_ms=30000&node=gpu-002`],
] as const) {
  test(`a wait for ${what} ends with the key that began it, and is answered with a refusal`, async (t) => {
    const plane = await setUpOperatorServer(t)
    const { next } = (await plane.call('viewer', 'GET', '/v1/journal?last=1')).body
    const before = plane.timers.waiting()
    const waiting = plane.call('viewer', 'GET', path(next))
    await begun(plane, before)
    const revoked = await plane.call('platform-admin', 'POST', `/v1/keys/${await viewerKeyId(plane)}/revoke`)
    assert.equal(revoked.status, 200)
    // No time passes here: the wait ends because of the revocation, not at its limit.
    const reply = await waiting
    assert.deepEqual([reply.status, reply.body.code, reply.body.entries], [401, 'OPERATOR_KEY_INVALID', undefined])
  })
}

test('a wait for scheduling changes ends with its key too, and other waits go on with an empty answer', async (t) => {
  const plane = await setUpOperatorServer(t)
  const listed = (await plane.call('viewer', 'GET', '/v1/scheduling')).body
  const before = plane.timers.waiting()
  const revokedWait = plane.call('viewer', 'GET', `/v1/scheduling?after=${listed.next}&wait_ms=20000`)
  await begun(plane, before)
  const otherWait = plane.call('operator', 'GET', `/v1/scheduling?after=${listed.next}&wait_ms=20000`)
  await begun(plane, before + 1)
  await plane.call('platform-admin', 'POST', `/v1/keys/${await viewerKeyId(plane)}/revoke`)
  assert.equal((await revokedWait).status, 401)
  const other = await otherWait
  assert.deepEqual([other.status, other.body.nodes], [200, []])
})

test('a revocation that another replica made ends the wait here', async (t) => {
  const plane = await setUpOperatorServer(t)
  const { next } = (await plane.call('viewer', 'GET', '/v1/journal?last=1')).body
  const id = await viewerKeyId(plane)
  const before = plane.timers.waiting()
  const waiting = plane.call('viewer', 'GET', `/v1/journal?after=${next}&wait_ms=30000`)
  await begun(plane, before)
  // As a replica tells of it: the entries, and no rows that are not kept in memory.
  const feed = {
    ...plane.feed,
    publish: (committed: Parameters<typeof plane.feed.publish>[0]) =>
      plane.feed.publish({ ...committed, origin: 'elsewhere', writes: [] }),
  }
  await revokeOperatorKey({ ...plane, feed }, plane.keySeal, id, operator)
  assert.equal((await waiting).status, 401)
})
