// Seed 003, failure matrix: "node cert expires while node is online" and "... while node is offline". The plane goes away
// for longer than a certificate lives; the recovery listener is back before the other one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlaneBehindProxies } from '../process/plane-behind-proxies.ts'
import type { Plane } from '../process/start-plane.ts'
import { nodeOf } from './ask-plane.ts'
import {
  again,
  agentExplains,
  entriesOf,
  issuedTo,
  liveFor,
  longLifeMs,
  makeLongLived,
  planeExplains,
  recordOf,
  recoveryStory,
  renewNow,
  setLifetime,
  untilBack,
  untilCondition,
  untilItSays,
  untilUsed,
} from './failure-story.ts'

const briefMs = 6_000

const ways = ['key', 'bearer'] as const

/** Each kind has a profile of its name. */
const joinBoth = async (scope: Scope, plane: Plane, name: string): Promise<Member[]> => {
  await makeLongLived(plane, name)
  const members = await Promise.all(
    ways.map((way) => joinMember(scope, plane, { id: `${name}-${way}`, profile: name, args: ['--recovery', way] })),
  )
  await untilConnected(members)
  return members
}

/** The plane looks for certificates that are over twice a minute, so those that are off are off from the beginning. */
const domain = shared(async (scope) => {
  const proxied = await startPlaneBehindProxies(scope)
  const off = await joinBoth(scope, proxied.plane, 'offline')
  await liveFor(proxied.plane, 'offline', briefMs, ...off)
  // Twice: what the last one replaced still serves for a while, and has to be over, too.
  await Promise.all(off.map(renewNow))
  for (const member of off) await untilUsed(proxied.plane, member)
  await Promise.all(off.map((member) => member.stop()))
  await setLifetime(proxied.plane, 'offline', longLifeMs)
  return { ...proxied, off }
})

test('node cert expires while node is online: recovery enrollment replaces it, by key and by bearer token', async (t) => {
  const { plane, node, recovery } = domain()
  const members = await joinBoth(t, plane, 'online')
  await liveFor(plane, 'online', briefMs, ...members)
  const cameBefore = node.came().length + recovery.came().length
  const cutAtMs = performance.now()
  for (const proxy of [node, recovery]) proxy.refuse()
  for (const proxy of [node, recovery]) proxy.cut()
  await setLifetime(plane, 'online', longLifeMs)

  for (const member of members) {
    const said = await untilItSays(member, 'enrollment', 'cert_expired')
    assert.equal(said.evidence?.['serial'], member.says()?.certificate?.serial)
    await untilItSays(member, 'recovery', 'endpoint_unreachable')
  }
  const [first] = members
  const explained = await agentExplains(first ?? assert.fail())
  assert.match(explained.wrong.join('\n'), /cert_expired: its certificate expired/)
  assert.match(explained.next.join('\n'), /recovery is tried again/)
  const outageMs = performance.now() - cutAtMs
  const knocks = node.came().length + recovery.came().length - cameBefore

  // the way back is a listener of its own, and needs nothing of the other one.
  recovery.pass()
  await eventually(
    'a recovery while the runtime listener is away',
    async () => (await entriesOf(plane, 'online-key', 'node.recovered')).length === 1,
    { withinMs: 30_000 },
  )
  assert.equal(node.connections(), 0)
  node.pass()

  for (const [index, member] of members.entries()) {
    await untilBack(plane, member, 2)
    const story = await recoveryStory(plane, member)
    const requested = story.find(({ type }) => type === 'node.recovery_requested')
    assert.equal(requested.body.failure_class, 'cert_expired')
    assert.equal(requested.body.credential, ways[index])
    const recovered = story.find(({ type }) => type === 'node.recovered')
    assert.equal(recovered.body.security_event, true)
    assert.equal((await issuedTo(plane, member.id)).recoveries, 1)
    assert.deepEqual(await entriesOf(plane, member.id, 'refused'), [])
    assert.match(await planeExplains(plane, member.id), /recover/)
  }
  // Each tries its channel, and its renewal an eighth of what is left apart, and then its recovery.
  assert.ok(knocks < 100, `${knocks} connections in an outage of ${Math.round(outageMs)} ms`)
  t.diagnostic(`outage ${Math.round(outageMs)} ms: ${knocks} connections of two agents, one recovery each`)
})

test('node cert expires while node is offline: recovery runs on next start', async () => {
  const { plane, off } = domain()
  // the plane says so by itself, alerts, and keeps work away for that reason.
  for (const { id } of off) {
    const condition = await untilCondition(plane, id, 'cert_expired')
    assert.match(condition.reason, /expired/)
    const { scheduling } = await nodeOf(plane, id)
    assert.equal(scheduling.state, 'unavailable')
    assert.ok(scheduling.reasons.includes('cert_expired'), JSON.stringify(scheduling))
  }
  const { alerts } = (await plane.api('GET', '/v1/alerts')).body
  for (const { id } of off) {
    assert.ok(alerts.some(({ kind, subject }: Json) => kind === 'cert_expired' && subject === id))
  }

  // the plane loses its power, too, and nobody repairs anything.
  await plane.kill9()
  const restarted = await plane.restart()
  const members = off.map((member) => again(member))
  for (const [index, member] of members.entries()) {
    const node = await untilBack(restarted, member, 2)
    assert.deepEqual(node.conditions, [])
    const story = await recoveryStory(restarted, member)
    const requested = story.find(({ type }) => type === 'node.recovery_requested')
    assert.equal(requested.body.failure_class, 'cert_expired')
    assert.equal(requested.body.credential, ways[index])
    assert.equal(story.find(({ type }) => type === 'node.recovered').body.security_event, true)
    assert.ok(recordOf(member).some(({ class: failure }) => failure === 'cert_expired'))
    assert.equal((await issuedTo(restarted, member.id)).recoveries, 1)
    assert.deepEqual(await entriesOf(restarted, member.id, 'refused'), [])
  }
  const verified = await restarted.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stderr)
  await Promise.all(members.map((member) => member.stop()))
})
