// Seed 003, failure matrix: "active CA bundle stale" and "recovery CA bundle stale". No server is taken for the plane that
// cannot show it, whatever has to wait for that.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentRecovery } from '#agent/state/credentials.ts'
import { toPem } from '#pki/pem.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { startLocalTlsServer } from '../process/local-tls-server.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { identityOf, stoppedUntilExpired, withIdentity } from '../system/agent-recovery-setup.ts'
import { hierarchy } from '../vectors/pki-hierarchy.ts'
import { nodeOf, succeeded } from './ask-plane.ts'
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
  setLifetime,
  untilBack,
  untilItSays,
  untilItSaysNothingOf,
} from './failure-story.ts'
import { openWatchedRelay } from './watched-relay.ts'

const [listens, named] = ['127.0.0.1', '127.0.0.2']

const domain = shared(async (scope) => {
  const plane = await startPlane(scope, { args: ['--server-name', named] })
  const relay = (url: string) => {
    const port = Number(new URL(url).port)
    return openWatchedRelay(scope, { host: named, port }, { host: listens, port })
  }
  return { plane, runtime: await relay(plane.nodeUrl), recovery: await relay(plane.recoveryUrl) }
})

/** Of a plane that is not ours. */
const anotherRoot = (): string => toPem('CERTIFICATE', hierarchy('p256', Date.now()).root.certificate.der)

/** Listens where the plane should be, with a certificate of its own. */
const startImpostor = async (t: TestContext) => {
  const { port, server } = await startLocalTlsServer(t)
  const seen = { turnedAway: 0, trusted: 0, requests: 0 }
  server.on('tlsClientError', () => seen.turnedAway++)
  server.on('secureConnection', () => seen.trusted++)
  server.on('request', () => seen.requests++)
  return { address: { host: listens, port }, seen }
}

test('active CA bundle stale: server_tls_untrusted, then refreshed through the recovery endpoint, validated by its own bundle', async (t) => {
  const { plane, runtime } = domain()
  const member = await joinMember(t, plane, { id: 'stale-1', profile: 'gpu-cloud' })
  await untilConnected([member])
  await member.stop()
  const { roots, recovery } = identityOf(member)
  // the recovery endpoint has a trust bundle of its own.
  assert.ok(recovery !== null && recovery.trust.roots.every((root) => !roots.includes(root)))
  withIdentity(member, (identity) => ({ ...identity, roots: [anotherRoot()] }))

  const answered = runtime.answered()
  const back = again(member)
  const said = await untilItSays(back, 'channel', 'server_tls_untrusted')
  assert.equal(said.evidence?.['code'], 'SELF_SIGNED_CERT_IN_CHAIN')
  assert.equal(runtime.answered(), answered, 'nothing was asked of a server that is not trusted')
  await untilBack(plane, back, 2)
  assert.deepEqual(identityOf(back).roots, roots)
  const story = await recoveryStory(plane, back)
  const requested = story.find(({ type }) => type === 'node.recovery_requested')
  assert.equal(requested.body.failure_class, 'server_tls_untrusted')
  assert.ok(
    recordOf(back).some(
      (event) => event.class === 'server_tls_untrusted' && event.correlation === requested.correlation,
    ),
  )
  assert.match(await planeExplains(plane, 'stale-1'), /server_tls_untrusted/)
  assert.deepEqual(await entriesOf(plane, 'stale-1', 'refused'), [])
  assert.equal((await issuedTo(plane, 'stale-1')).recoveries, 1)
})

test('active CA bundle stale: an impostor where the plane should be gets no byte of a request', async (t) => {
  const { plane, runtime } = domain()
  const impostor = await startImpostor(t)
  const member = await joinMember(t, plane, { id: 'haunted-1', profile: 'gpu-cloud' })
  await untilConnected([member])
  const answered = runtime.answered()
  runtime.leadsTo(impostor.address)
  const said = await untilItSays(member, 'channel', 'server_tls_untrusted')
  assert.equal(said.evidence?.['code'], 'DEPTH_ZERO_SELF_SIGNED_CERT')
  const recoveries = async (): Promise<number> => (await issuedTo(plane, 'haunted-1')).recoveries
  await eventually('its roots to be refreshed', async () => (await recoveries()) > 0, { withinMs: 60_000 })
  // They are the same, so that this was all a recovery can do, however often it meets the stranger, and in a hurry.
  const { turnedAway } = impostor.seen
  await eventually(
    'it to be met again and again',
    () => {
      member.signal('SIGUSR2')
      return impostor.seen.turnedAway >= turnedAway + 20
    },
    { withinMs: 60_000, everyMs: 200 },
  )
  assert.deepEqual({ ...impostor.seen, turnedAway: 0 }, { turnedAway: 0, trusted: 0, requests: 0 })
  assert.equal(runtime.answered(), answered)
  assert.equal(await recoveries(), 1)
  runtime.leadsTo({ host: listens, port: plane.nodePort })
  await untilBack(plane, member, 2)
  assert.equal(await recoveries(), 1)
  assert.deepEqual(await entriesOf(plane, 'haunted-1', 'refused'), [])
  t.diagnostic(`an impostor was turned away ${impostor.seen.turnedAway} times and asked for nothing; one recovery`)
})

test('active CA bundle stale: an untrusted server that goes away before the recovery costs none', async (t) => {
  const { plane, runtime, recovery } = domain()
  const impostor = await startImpostor(t)
  const member = await joinMember(t, plane, { id: 'passing-1', profile: 'gpu-cloud' })
  await untilConnected([member])
  recovery.leadsTo({ host: listens, port: 1 })
  runtime.leadsTo(impostor.address)
  await untilItSays(member, 'recovery', 'endpoint_unreachable')
  runtime.leadsTo({ host: listens, port: plane.nodePort })
  await eventually(
    'the identity there is to be good after all',
    async () => {
      member.signal('SIGUSR2')
      return (await nodeOf(plane, 'passing-1')).channel_open
    },
    { withinMs: 30_000, everyMs: 500 },
  )
  recovery.leadsTo({ host: listens, port: Number(new URL(plane.recoveryUrl).port) })
  assert.equal((await nodeOf(plane, 'passing-1')).epoch, 1)
  assert.equal((await issuedTo(plane, 'passing-1')).recoveries, 0)
  await eventually('it to have written that down', () =>
    recordOf(member).some(({ text }) => text === 'The identity there is turned out to be good.'),
  )
})

const staleTrust = (recovery: AgentRecovery | null): AgentRecovery => {
  assert.ok(recovery !== null)
  return { ...recovery, trust: { ...recovery.trust, roots: [anotherRoot()] } }
}

/** What the machine says of its hardware; read anew whenever it is asked. */
const hardwareOf = (t: TestContext) => {
  const file = path.join(tempFolder(t), 'hardware.json')
  return { file, has: (mac: string) => fs.writeFileSync(file, JSON.stringify({ macs: [mac], bmc_serial: null })) }
}

test('recovery CA bundle stale: fails closed with recovery_enrollment_blocked, until a repair bundle ends it', async (t) => {
  const { plane, runtime, recovery } = domain()
  const [own, anothers] = ['52:54:00:00:00:01', '52:54:00:00:00:02']
  const hardware = hardwareOf(t)
  hardware.has(own)
  await makeLongLived(plane, 'mended')
  succeeded(await plane.api('POST', '/v1/nodes', { id: 'blocked-1', profile: 'mended', macs: [own] }))
  const args = ['--hardware-file', hardware.file, '--report-every', '500ms', '--rehearse-every', '1s']
  const member = await joinMember(t, plane, { id: 'blocked-1', profile: 'mended', args })
  await untilConnected([member])
  await liveFor(plane, 'mended', 4_000, member)
  await stoppedUntilExpired(member)
  await setLifetime(plane, 'mended', longLifeMs)
  withIdentity(member, (identity) => ({ ...identity, recovery: staleTrust(identity.recovery) }))

  const [came, answered] = [recovery.came(), recovery.answered()]
  const blocked = again(member)
  const said = await untilItSays(blocked, 'recovery', 'recovery_enrollment_blocked')
  assert.equal(said.code, 'server_tls_untrusted')
  assert.match(said.next, /repair-bundle/)
  await eventually(
    'it to knock again, in vain',
    () => {
      blocked.signal('SIGUSR2')
      return recovery.came() >= came + 3
    },
    { withinMs: 30_000, everyMs: 200 },
  )
  assert.equal(recovery.answered(), answered, 'something was sent beyond the handshake')
  assert.deepEqual(await entriesOf(plane, 'blocked-1', 'node.recovery_requested', 'refused'), [])
  assert.equal((await nodeOf(plane, 'blocked-1')).epoch, 1)
  const explained = await agentExplains(blocked)
  assert.match(explained.wrong.join('\n'), /recovery_enrollment_blocked/)
  assert.match(explained.advice.join('\n'), /repair-bundle/)
  t.diagnostic(`${recovery.came() - came} knocks, none beyond the handshake`)

  // the operator's way out. It stays in quarantine until its evidence has passed and an operator releases it.
  hardware.has(anothers)
  await bringRepairBundle(t, plane, blocked)
  const inQuarantine = await eventually(
    'a channel out of quarantine',
    async () => {
      const node = await nodeOf(plane, 'blocked-1')
      return node.membership === 'quarantined' && node.channel_open && node.epoch === 2 ? node : null
    },
    { withinMs: 45_000 },
  )
  assert.equal(inQuarantine.scheduling.state, 'unavailable')
  const failed = await evidenceOf(plane, 'blocked-1', false)
  assert.deepEqual(failing(failed), ['hardware'])
  const tooEarly = await plane.api('POST', '/v1/nodes/blocked-1/release', {})
  assert.equal(tooEarly.status, 409, JSON.stringify(tooEarly.body))
  const { keyPem, chainPem } = identityOf(blocked).current
  const wants = await nodeCall(await plane.target(), { keyPem, chainPem }, 'POST', '/v1/nodes/blocked-1/renew', {})
  assert.equal(wants.body.code, 'NODE_QUARANTINED', 'its channel is for evidence only')

  hardware.has(own)
  runtime.leadsTo({ host: listens, port: plane.nodePort })
  assert.deepEqual(failing(await evidenceOf(plane, 'blocked-1', true)), [])
  assert.equal((await nodeOf(plane, 'blocked-1')).membership, 'quarantined')
  assert.equal((await plane.muster('node', 'release', 'blocked-1')).code, 0)
  const node = await untilBack(plane, blocked, 2)
  assert.equal(node.repair, null)
  await untilItSaysNothingOf(blocked, 'recovery')
  const life = (await entriesOf(plane, 'blocked-1', ...repairLife)).map(({ type }) => type)
  assert.deepEqual([...new Set(life)], repairLife)
  const [repaired] = await entriesOf(plane, 'blocked-1', 'node.repaired')
  assert.equal(repaired.body.failure_class, 'cert_expired', 'what failed before the bundle came')
})

const repairLife = [
  'node.quarantined',
  'node.repair_bundle_issued',
  'node.repaired',
  'node.repair_evidence',
  'node.released',
  'node.returned',
]

const bringRepairBundle = async (t: TestContext, plane: Plane, { id, state }: Member): Promise<void> => {
  const bundle = path.join(tempFolder(t), 'repair.json')
  const made = await plane.muster(
    'node',
    'repair-bundle',
    id,
    '--reason',
    'its recovery roots are stale',
    '--out',
    bundle,
  )
  assert.equal(made.code, 0, made.stderr)
  assert.doesNotMatch(fs.readFileSync(bundle, 'utf8'), /PRIVATE KEY/)
  const given = await runMuster(['agent', 'repair', '--state', state, '--bundle-file', bundle])
  assert.equal(given.code, 0, given.stderr)
}

const evidenceOf = (plane: Plane, id: string, passed: boolean): Promise<Json> =>
  eventually(
    `the evidence of ${id} to ${passed ? 'pass' : 'fail'}`,
    async () => {
      const evidence = (await nodeOf(plane, id)).repair?.evidence ?? null
      // The rehearsal comes a little after the channel.
      const waits = !passed && failing(evidence ?? { checks: [] }).includes('rehearsal')
      return evidence !== null && evidence.passed === passed && !waits ? evidence : null
    },
    { withinMs: 45_000 },
  )

const failing = ({ checks }: Json): string[] => checks.filter(({ ok }: Json) => !ok).map(({ name }: Json) => name)
