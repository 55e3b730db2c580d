// The fire drill: a healthy agent rehearses its recovery, and what would not work is known before it is needed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { startPlaneBehindProxies } from '../process/plane-behind-proxies.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hierarchy } from '../vectors/pki-hierarchy.ts'
import { connected, identityOf, nodeOf, troubleAt, withIdentity } from './agent-recovery-setup.ts'

const plane = sharedPlane()
const args = ['--rehearse-every', '1s', '--report-every', '200ms']

type Rehearsal = { outcome: string; step: string | null }

const rehearsalOf = async (id: string): Promise<Rehearsal | null> => {
  const { body } = await plane().api('GET', `/v1/nodes/${id}`)
  return (body as { evidence: { last_rehearsal: Rehearsal | null } }).evidence.last_rehearsal
}

test('a healthy agent rehearses its recovery soon after it is connected, and nothing changes', async (t) => {
  const agent = startAgent(t, { join: await plane().token('--node', 'drill-1'), args })
  await connected(plane(), 'drill-1', 1)
  const { counter, current } = identityOf(agent)
  await eventually('a rehearsal', async () => (await rehearsalOf('drill-1'))?.outcome === 'passed', {
    withinMs: 20_000,
  })
  assert.deepEqual([identityOf(agent).counter, identityOf(agent).current.serial], [counter, current.serial])
  assert.equal((await nodeOf(plane(), 'drill-1')).epoch, 1)
})

test('a trust of recovery that has gone stale shows in the drill, while everything else works', async (t) => {
  const agent = startAgent(t, { join: await plane().token('--node', 'drill-2') })
  await connected(plane(), 'drill-2', 1)
  await agent.stop()
  const stale = toPem('CERTIFICATE', hierarchy('p256', Date.now()).root.certificate.der)
  withIdentity(agent, (identity) => {
    const { recovery } = identity
    return recovery === null
      ? assert.fail()
      : { ...identity, recovery: { ...recovery, trust: { ...recovery.trust, roots: [stale] } } }
  })
  const again = agent.restart({ args })
  await connected(plane(), 'drill-2', 1)
  const status = await troubleAt(again, 'rehearsal', 'server_tls_untrusted')
  assert.equal(status.troubles.find(({ place }) => place === 'rehearsal')?.class, 'recovery_enrollment_blocked')
  await eventually('the plane to know', async () => (await rehearsalOf('drill-2'))?.step === 'trust', {
    withinMs: 20_000,
  })
})

test('an agent that registered nothing has nothing to rehearse', async (t) => {
  const join = await plane().token('--node', 'drill-3')
  const agent = startAgent(t, { join, args: [...args, '--recovery', 'none'] })
  await connected(plane(), 'drill-3', 1)
  assert.equal(identityOf(agent).recovery?.credential.kind, 'none')
  assert.equal(await rehearsalOf('drill-3'), null)
})

test('a clock that is set between a challenge and its answer does not fail the drill', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const time = openFakeTime(tempFolder(t), library)
  const proxied = await startPlaneBehindProxies(t, { env: time.env })
  const join = (await proxied.plane.api('POST', '/v1/tokens', { node: 'drill-4' })).body.join
  // Slow enough that the clock is set before the second call of the drill, which brings the answer, has shaken hands.
  proxied.recovery.delay(200)
  const agent = startAgent(t, { env: time.env, join, args: ['--report-every', '200ms'] })
  await eventually('the call with the answer', () => proxied.recovery.came().length >= 2, { everyMs: 5 })
  time.advance(120_000)
  await eventually('a drill that passed', async () => {
    const { evidence } = (await proxied.plane.api('GET', '/v1/nodes/drill-4')).body
    assert.equal(evidence.last_rehearsal?.outcome, 'passed')
    return true
  })
  assert.equal(proxied.recovery.came().length, 4)
  assert.doesNotMatch(agent.stderr(), /the recovery would not work/)
})

test('a drill that failed for the clock is repeated as soon as the clock is right', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const time = openFakeTime(tempFolder(t), library)
  const join = await plane().token('--node', 'drill-5')
  const agent = startAgent(t, { env: time.env, join, args: ['--report-every', '200ms'] })
  await connected(plane(), 'drill-5', 1)
  await agent.stop()
  time.advance(-600_000)
  const skewed = agent.restart()
  await troubleAt(skewed, 'rehearsal', 'recovery_would_fail')
  await eventually('the plane to know', async () => (await rehearsalOf('drill-5'))?.step === 'clock')
  time.advance(600_000)
  await eventually('a drill that passed', async () => (await rehearsalOf('drill-5'))?.outcome === 'passed')
  await eventually('no condition', async () => {
    assert.deepEqual((await plane().api('GET', '/v1/nodes/drill-5')).body.conditions, [])
    return true
  })
})
