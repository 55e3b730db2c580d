// The plane dies without a word, again and again. Whatever it had acknowledged has to be there when it is back.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Random } from '#platform/random.ts'
import { within } from '../process/eventually.ts'
import { nodeCall, type Identity, type NodeTarget } from '../process/node-call.ts'
import { storedCertificates, targetByAddress } from '../process/plane-records.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { withSeed } from '../process/with-seed.ts'
import { startLives, type Life } from './plane-life-load.ts'

const cycles = process.env['MUSTER_LONG'] === '1' ? 100 : 4
const lanes = 12

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Killed a moment after so many acknowledgements: under load for certain, at whatever it is doing by chance. */
const killUnderLoad = async (plane: Plane, target: NodeTarget, prefix: string, random: Random) => {
  const enough = 40 + Math.floor(random.unit() * 160)
  const momentMs = random.unit() * 25
  const reached = Promise.withResolvers<void>()
  const killed = reached.promise.then(() => later(momentMs)).then(() => plane.kill9())
  const onAcknowledged = (count: number): void => void (count >= enough && reached.resolve())
  const load = startLives(plane, target, random, { lanes, prefix, onAcknowledged })
  await within('the load to notice the kill', 60_000, load.over)
  assert.ok(load.acknowledgements() >= enough, `the plane went away by itself:\n${plane.stderr()}`)
  await killed
  return load.lives
}

const confirm = (target: NodeTarget, id: string, identity: Identity) =>
  nodeCall(target, identity, 'POST', `/v1/nodes/${id}/confirm`, {})

const membershipOf = async (plane: Plane, id: string): Promise<string> => {
  const { status, body } = await plane.api('GET', `/v1/nodes/${id}`)
  assert.equal(status, 200, `${id} is gone`)
  return body.membership
}

const checkLife = async (plane: Plane, target: NodeTarget, life: Life): Promise<void> => {
  const { id, node, acknowledged, underWay } = life
  const stored = await storedCertificates(plane, id)
  const leaves = stored.map(({ der }) => Buffer.from(der, 'base64').toString('base64'))
  for (const { chainPem } of acknowledged)
    assert.ok(leaves.includes(leafBase64(chainPem)), `a certificate of ${id} was acknowledged and is gone`)
  // What was under way is there whole or not at all, and never a second time.
  assert.ok(leaves.length <= acknowledged.length + 1, `${id} has ${leaves.length} certificates`)

  const revoked = (await membershipOf(plane, id)) === 'revoked'
  if (life.revoked) assert.ok(revoked, `the revocation of ${id} was acknowledged and is gone`)
  if (revoked) {
    assert.ok(life.revoked || underWay === 'revoke', `${id} was revoked by nobody`)
    life.revoked = true
    for (const identity of acknowledged) {
      const { status, body } = await confirm(target, id, identity)
      assert.deepEqual([status, body.code], [403, 'NODE_REVOKED'], id)
    }
    return
  }
  // Whatever was interrupted is asked again, as an agent does.
  if (underWay === 'enroll') {
    const reply = await node.enrollByToken(life.secret)
    assert.equal(reply.status, 200, `${id} enrolls again: ${JSON.stringify(reply.body)}`)
    acknowledged.push(node.identity())
  } else if (underWay !== null && typeof underWay === 'object') {
    const { reply, identity } = await node.renew(underWay.renew)
    assert.ok(identity, `${id} renews again: ${JSON.stringify(reply.body)}`)
    acknowledged.push(identity)
  }
  life.underWay = null
  const newest = acknowledged.at(-1)
  // Only where it never got as far as asking is there nothing to check.
  if (newest === undefined) return
  const { status, body } = await confirm(target, id, newest)
  assert.equal(status, 200, `the certificate of ${id} was acknowledged and does not work: ${JSON.stringify(body)}`)
}

const leafBase64 = (chainPem: string): string =>
  (/-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(chainPem)?.[1] ?? '').replaceAll(/\s/g, '')

const inParallel = async <T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> => {
  const waiting = [...items]
  const lane = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: 8 }, lane))
}

const chainVerifies = async (plane: Plane): Promise<void> => {
  const { status, body } = await plane.api('POST', '/v1/journal/verify', {})
  assert.deepEqual([status, body.intact, body.broken], [200, true, null])
}

const everybody = async (plane: Plane): Promise<Map<string, string>> => {
  const memberships = new Map<string, string>()
  for (let after: string | null = null; ;) {
    const { body } = await plane.api('GET', `/v1/nodes?limit=1000${after === null ? '' : `&after=${after}`}`)
    for (const { id, membership } of body.nodes) memberships.set(id, membership)
    after = body.next
    if (after === null) return memberships
  }
}

test(`kill -9 of the plane under load, ${cycles} times: all that was acknowledged is there, and the chain verifies`, (t) =>
  withSeed(async (random) => {
    let plane = await startPlane(t)
    const target = await targetByAddress(plane)
    const all: Life[] = []
    for (let cycle = 0; cycle < cycles; cycle++) {
      const lives = await killUnderLoad(plane, target, `c${cycle}`, random)
      plane = await plane.restart()
      await chainVerifies(plane)
      await inParallel(lives, (life) => checkLife(plane, target, life))
      all.push(...lives)
    }
    // The last kill came on what earlier ones had left: none of it was lost meanwhile.
    const memberships = await everybody(plane)
    for (const { id, revoked, acknowledged } of all) {
      const expected = revoked ? 'revoked' : acknowledged.length > 0 ? 'active' : 'registered'
      assert.equal(memberships.get(id), expected, id)
    }
    const verified = await plane.muster('journal', 'verify')
    assert.equal(verified.code, 0, verified.stdout)
    const [revocations, certificates] = [all.filter(({ revoked }) => revoked), all.flatMap((life) => life.acknowledged)]
    t.diagnostic(`${all.length} nodes, ${certificates.length} certificates, ${revocations.length} revocations`)
  }))
