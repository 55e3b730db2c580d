// A reply lost after the commit must brick nobody (ruling 4): the same request gets the same certificate, signed once.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { Scope } from '../process/cleanup.ts'
import { startFaultProxy } from '../process/fault-proxy.ts'
import { journalEntries, newSecret, storedCertificates, targetByAddress } from '../process/plane-records.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'

const setUp = async (t: Scope) => {
  const plane = await startPlane(t)
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: plane.nodePort })
  const node = rawNode(await targetByAddress(plane, proxy.port))
  const secret = await newSecret(plane, 'gpu-001')
  /** The request reaches the plane, is carried out, and its reply never arrives. */
  const lose = async (request: () => Promise<unknown>): Promise<void> => {
    const before = proxy.repliesDropped()
    proxy.dropReplies(1)
    await assert.rejects(request())
    assert.equal(proxy.repliesDropped(), before + 1)
  }
  return { plane, node, secret, lose }
}

const leafOf = (chainPem: string): Buffer => new X509Certificate(chainPem).raw

/** That there are so many of both, and the newest certificate in the store. */
const signed = async (plane: Plane, type: string, entries: number, certificates: number): Promise<Buffer> => {
  assert.equal((await journalEntries(plane, { node: 'gpu-001', type })).length, entries, `entries ${type}`)
  const stored = await storedCertificates(plane, 'gpu-001')
  assert.equal(stored.length, certificates, 'certificates in the store')
  return Buffer.from(stored.at(-1)?.der ?? '', 'base64')
}

const restarts = {
  'at once': async (plane: Plane) => plane,
  'after a clean restart of the plane': async (plane: Plane) => {
    await plane.stop()
    return plane.restart()
  },
  'after the plane was killed and started again': async (plane: Plane) => {
    await plane.kill9()
    return plane.restart()
  },
}

const loseEnrollment = async (
  { plane, node, secret, lose }: Awaited<ReturnType<typeof setUp>>,
  restart: (plane: Plane) => Promise<Plane>,
): Promise<Plane> => {
  await lose(() => node.enrollByToken(secret))
  const issued = await signed(plane, 'host.enrolled', 1, 1)
  const after = await restart(plane)
  for (let repeat = 0; repeat < 2; repeat++) {
    const reply = await node.enrollByToken(secret)
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    assert.deepEqual(leafOf(reply.body.certificate_chain), issued)
  }
  assert.deepEqual(await signed(after, 'host.enrolled', 1, 1), issued)
  return after
}

const loseRenewal = async (
  plane: Plane,
  node: RawNode,
  lose: (request: () => Promise<unknown>) => Promise<void>,
  restart: (plane: Plane) => Promise<Plane>,
): Promise<void> => {
  const request = node.newRenewal()
  await lose(() => node.renew(request))
  const issued = await signed(plane, 'node.renewed', 1, 2)
  const after = await restart(plane)
  for (let repeat = 0; repeat < 2; repeat++) {
    const { reply, identity } = await node.renew(request)
    assert.ok(identity, JSON.stringify(reply.body))
    assert.deepEqual(leafOf(identity.chainPem), issued)
    if (repeat === 1) node.use(identity)
  }
  assert.deepEqual(await signed(after, 'node.renewed', 1, 2), issued)
  assert.equal((await node.confirm()).status, 200)
  assert.equal((await after.api('GET', '/v1/nodes/gpu-001')).body.conditions.length, 0)
  assert.equal((await after.api('POST', '/v1/journal/verify', {})).body.intact, true)
}

for (const [when, restart] of Object.entries(restarts)) {
  test(`a lost reply to an enrollment and to a renewal, repeated ${when}: the same certificate, one signature`, async (t) => {
    const it = await setUp(t)
    const plane = await loseEnrollment(it, restart)
    await it.lose(() => it.node.confirm())
    assert.equal((await it.node.confirm()).status, 200)
    assert.equal((await journalEntries(plane, { node: 'gpu-001', type: 'node.confirmed' })).length, 1)
    await loseRenewal(plane, it.node, it.lose, restart)
  })
}
