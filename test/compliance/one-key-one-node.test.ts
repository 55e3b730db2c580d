// L3, A5: a public key is certified for one node only, and the ban of a key reaches every node that has it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, spkiHash, type PrivateKey } from '#pki/keys.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { act, makeToken, nodeOf, refusal, succeeded, tokenOf } from './ask-plane.ts'

const shared = sharedPlane()
const inUse = [409, 'KEY_IN_USE']

const requestWith = (key: PrivateKey) => ({ key, csr: makeCsr(key, 'node') })

const active = async (plane: Plane, id: string): Promise<RawNode> => {
  const node = rawNode(await plane.target())
  succeeded(await node.enrollByToken((await makeToken(plane, { node: id })).secret))
  succeeded(await node.confirm())
  return node
}

const enrollWith = async (plane: Plane, id: string, key: PrivateKey) => {
  const token = await makeToken(plane, { node: id })
  const reply = await rawNode(await plane.target()).enrollByToken(token.secret, { csr: requestWith(key).csr })
  return { token, reply }
}

const alertAbout = (plane: Plane, kind: string, key: PrivateKey) =>
  eventually(`an alert ${kind}`, async () => {
    const { alerts } = (await plane.api('GET', '/v1/alerts')).body
    return alerts.find(
      (one: { kind: string; subject: string }) => one.kind === kind && one.subject === spkiHash(key.spki),
    )
  })

describe('L3: a key that a node holds or held', { concurrency: true }, () => {
  test('of another live node is refused at enrollment and renewal, the token stays good, and an alert names both', async () => {
    const plane = shared()
    const one = await active(plane, 'key-a1')
    const { token, reply } = await enrollWith(plane, 'key-a2', one.key)
    assert.deepEqual(refusal(reply), inUse)
    assert.equal((await tokenOf(plane, token.id)).state, 'unused')
    const alert = await alertAbout(plane, 'copied_image', one.key)
    assert.equal(alert.severity, 'critical')
    assert.match(alert.reason, /copied image: key-a2 brought the key of key-a1/)

    const other = await active(plane, 'key-a3')
    assert.deepEqual(refusal((await other.renew(requestWith(one.key))).reply), inUse)
    // With a new key it goes on, and so does the holder.
    succeeded((await other.renew()).reply)
    succeeded(await one.confirm())
  })

  test('of a quarantined node is refused', async () => {
    const plane = shared()
    const one = await active(plane, 'key-b1')
    await act(plane, 'key-b1', 'quarantine', { reason: 'odd' })
    assert.deepEqual(refusal((await enrollWith(plane, 'key-b2', one.key)).reply), inUse)
  })

  test('as the recovery key of another node is refused as a TLS key, at enrollment, renewal and recovery', async () => {
    const plane = shared()
    const one = await recoverableNode(plane, 'key-c1')
    assert.deepEqual(refusal((await enrollWith(plane, 'key-c2', one.recoveryKey)).reply), inUse)
    const other = await recoverableNode(plane, 'key-c3')
    const request = requestWith(one.recoveryKey)
    assert.deepEqual(refusal((await other.node.renew(request)).reply), inUse)
    assert.deepEqual(refusal(await other.recover({ csr: request.csr })), inUse)
    assert.deepEqual(refusal(await other.recover({ csr: requestWith(one.node.key).csr })), inUse)
    await other.comeBack()
  })

  test('as its own earlier key is refused at renewal and recovery; the same request again gets the same answer', async () => {
    const plane = shared()
    const one = await recoverableNode(plane, 'key-d1')
    const { node } = one
    const { reply, request, identity } = await node.renew()
    assert.equal((await node.renew(request)).reply.body.certificate_chain, reply.body.certificate_chain)
    assert.ok(identity !== null)
    node.use(identity)
    succeeded(await node.confirm())
    assert.deepEqual(refusal((await node.renew(requestWith(node.key))).reply), inUse)
    const counter = reply.body.counter
    assert.deepEqual(refusal(await one.recover({ csr: requestWith(node.key).csr, counter })), inUse)
  })

  test('brought by eight nodes at the same time is certified for exactly one of them', async () => {
    const plane = shared()
    const key = generateKey('p256')
    const ids = Array.from({ length: 8 }, (_, number) => `key-e${number}`)
    const tokens = await Promise.all(ids.map((node) => makeToken(plane, { node })))
    const { csr } = requestWith(key)
    const target = await plane.target()
    const replies = await Promise.all(tokens.map(({ secret }) => rawNode(target).enrollByToken(secret, { csr })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409, 409, 409, 409, 409])
  })
})

test('L3: clones of a state folder with an unsent request enroll with different keys', async (t) => {
  const plane = shared()
  const { domain, rootFingerprint } = plane
  const nowhere = `https://127.0.0.1:${await freePort()}`
  const secret = `enroll_${'x'.repeat(43)}`
  const built = startAgent(t, {
    join: formatJoinString({ url: nowhere, domain, rootFingerprint, secret, marked: true }),
  })
  const file = path.join(built.state, 'identity.json')
  await eventually('the request to be kept', async () => fs.existsSync(file))
  await built.kill9()
  const baked = JSON.parse(fs.readFileSync(file, 'utf8')).request.keyPem
  const keys = await Promise.all(
    ['clone-1', 'clone-2'].map(async (id) => {
      const state = path.join(tempFolder(t), 'state')
      fs.cpSync(built.state, state, { recursive: true })
      const agent = startAgent(t, { state, join: (await makeToken(plane, { node: id })).join })
      await eventually(`${id} to be active`, async () => (await nodeOf(plane, id)).membership === 'active', {
        withinMs: 20_000,
      })
      assert.match(agent.stderr(), /made for another join string/)
      const { identity } = JSON.parse(fs.readFileSync(path.join(state, 'identity.json'), 'utf8'))
      return [identity.current.keyPem, identity.recovery.credential.keyPem]
    }),
  )
  assert.equal(new Set([...keys.flat(), baked]).size, 5)
})
