// The agent against a small plane: real TLS and WebSockets, answers chosen by the test.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { refusal, startSmallPlane, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hierarchy } from '../vectors/pki-hierarchy.ts'

const plane = (t: TestContext): Promise<SmallPlane> => startSmallPlane(t, Date.now())
const stateOf = (folder: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, 'identity.json'), 'utf8')) as {
    identity: {
      roots: string[]
      endpoints: { runtime: string[] }
      trustRevision: number
      current: { serial: string; keyPem: string; proven: boolean; rootPem?: string | null }
      previous: object | null
    } | null
    request: { csrPem: string } | null
  }
const statusOf = (folder: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, 'status.json'), 'utf8')) as {
    phase: string
    troubles: { place: string; code: string; attempts: number }[]
  }
const paths = (small: SmallPlane): string[] => small.calls.map(({ path: called }) => called)
const channelOpen = (small: SmallPlane, count = 1) =>
  eventually(`${count} channels`, () => small.channels.length >= count)

test('an agent enrolls, opens a channel as the first use of its certificate, and deletes the join file only then', async (t) => {
  const small = await plane(t)
  const file = path.join(tempFolder(t), 'join')
  fs.writeFileSync(file, formatJoinString(small.join))
  const config = testAgentConfig(t, small.join, { join: { kind: 'file', path: file } })
  const agent = runTestAgent(t, config)
  await channelOpen(small)
  assert.deepEqual(paths(small), ['/v1/enroll'])
  assert.equal(small.calls[0]?.body['enrollment_token'], small.join.secret)
  assert.equal(fs.existsSync(file), false)
  assert.equal(fs.statSync(path.join(config.stateFolder, 'identity.json')).mode & 0o777, 0o600)
  assert.equal(fs.statSync(config.stateFolder).mode & 0o777, 0o700)
  assert.deepEqual(await agent.stop(), { kind: 'stopped' })
  assert.equal(statusOf(config.stateFolder).phase, 'stopped')
})

test('R-069: the environment file of a bundle is deleted once the identity is kept, and only with the token that was used', async (t) => {
  const small = await plane(t)
  const folder = tempFolder(t)
  const text = `# Muster\nMUSTER_NODE_ID=gpu-001\nMUSTER_JOIN=${formatJoinString(small.join)}\n`
  const [file, other] = [path.join(folder, 'gpu-001.env'), path.join(folder, 'other.env')]
  fs.writeFileSync(file, text)
  fs.writeFileSync(other, text.replace(/enroll_.{43}/, `enroll_${'x'.repeat(43)}`))
  const agent = runTestAgent(t, testAgentConfig(t, small.join, { join: { kind: 'file', path: file } }))
  await channelOpen(small)
  assert.equal(fs.existsSync(file), false)
  await agent.stop()
  const given = { kind: 'given', join: small.join, envFile: other } as const
  const config = testAgentConfig(t, small.join, { join: given })
  const second = runTestAgent(t, config)
  await channelOpen(small, 2)
  assert.equal(fs.existsSync(other), true, 'it holds another token')
  await second.stop()
  // Killed between the two: a start with the identity deletes it.
  fs.writeFileSync(other, text)
  const third = runTestAgent(t, config)
  await channelOpen(small, 3)
  assert.equal(fs.existsSync(other), false)
  await third.stop()
})

test('R-101, R-131: an agent reports the addresses and roots it has to a plane that takes them, and to no other', async (t) => {
  const small = await plane(t)
  small.enrollAnswer = { understands: ['report'] }
  const config = testAgentConfig(t, small.join, { reportEveryMs: 50 })
  const reportOn = (channel: number) =>
    eventually('a report of an open channel', () =>
      small.channels[channel]?.frames.findLast(({ type, body }) => type === 'report' && body['number'] !== 1),
    )
  const before = runTestAgent(t, config)
  assert.equal((await reportOn(0)).body['connection'], undefined)
  await before.stop()
  // As an agent before 0.4 has left it.
  const state = stateOf(config.stateFolder)
  assert.ok(state.identity !== null)
  delete state.identity.current.rootPem
  fs.writeFileSync(path.join(config.stateFolder, 'identity.json'), JSON.stringify(state))
  small.capabilities = ['report_connection']
  const after = runTestAgent(t, config)
  const root = small.join.rootFingerprint
  const { connection } = (await reportOn(1)).body as { connection: Record<string, unknown> }
  const { channel, ...known } = connection
  assert.match(String(channel), /^wss:\/\/localhost:/)
  assert.deepEqual(known, {
    runtime: state.identity.endpoints.runtime,
    recovery: [],
    plane_roots: [root],
    recovery_roots: [],
    certificate_root: root,
  })
  await after.stop()
})

test('an answer whose certificate is not under the root that it names is not taken', async (t) => {
  const small = await plane(t)
  const other = hierarchy('p256', Date.now()).root.certificate
  small.enrollAnswer = { certificate_root: toPem('CERTIFICATE', other.der) }
  const config = testAgentConfig(t, small.join, {})
  const outcome = await runTestAgent(t, config).outcome
  assert.match('trouble' in outcome ? outcome.trouble.text : '', /not under the root that is named/)
  assert.equal(stateOf(config.stateFolder).identity, null)
})

test('a certificate whose channel does not open is confirmed by a call', async (t) => {
  const small = await plane(t)
  small.refuseChannel = refusal(503, 'UNAVAILABLE', 60_000)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  const confirmed = await eventually(
    'a confirmation',
    () => small.calls.find(({ path: called }) => called.endsWith('/confirm')),
    {
      withinMs: 30_000,
    },
  )
  assert.deepEqual(confirmed.body, { persisted: true })
  await eventually('it to be proven', () => stateOf(config.stateFolder).identity?.current.proven)
})

test('an agent with an identity goes on without a join string and without enrolling', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  const first = runTestAgent(t, config)
  await channelOpen(small)
  await first.stop()
  const again = { ...config, join: { kind: 'file', path: path.join(config.stateFolder, 'none') } } as const
  runTestAgent(t, again)
  await channelOpen(small, 2)
  assert.equal(paths(small).filter((called) => called === '/v1/enroll').length, 1)
  assert.equal(small.channels[1]?.serial, small.channels[0]?.serial)
})

test('a configuration and new roots are stored before they are acknowledged, and known after a restart', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  const agent = runTestAgent(t, config)
  await channelOpen(small)
  const { roots, endpoints } = stateOf(config.stateFolder).identity!
  small.sendOn(0, 'config', { revision: 7, vcluster: 'training', profile: small.profile, endpoints })
  small.sendOn(0, 'trust', { revision: 3, roots: [...roots, ...roots] })
  small.sendOn(0, 'tea_time', { sugar: 1 })
  const frames = await eventually('three answers', () => {
    const { frames: all } = small.channels[0]!
    return all.length >= 4 ? all : null
  })
  assert.deepEqual(
    frames.slice(1).map(({ type, body }) => [type, body]),
    [
      ['applied', { config_revision: 7, trust_revision: 0, persisted: true, detail: null }],
      ['applied', { config_revision: 7, trust_revision: 3, persisted: true, detail: null }],
      ['unknown_type', { type: 'tea_time' }],
    ],
  )
  assert.equal(stateOf(config.stateFolder).identity!.roots.length, 2)
  await agent.stop()
  runTestAgent(t, config)
  await channelOpen(small, 2)
  const hello = await eventually('its hello', () => small.channels[1]?.frames[0])
  assert.equal(hello.body['config_revision'], 7)
  assert.equal(hello.body['trust_revision'], 3)
  const kept = JSON.parse(fs.readFileSync(path.join(config.stateFolder, 'config.json'), 'utf8')) as { vcluster: string }
  assert.equal(kept.vcluster, 'training')
})

test('a lost reply is asked for again with the same request, also by the next process', async (t) => {
  const small = await plane(t)
  small.intercept = (called) => (called === '/v1/enroll' ? 'lost' : null)
  const config = testAgentConfig(t, small.join, {})
  const first = runTestAgent(t, config)
  await eventually('a request', () => small.calls.length > 0)
  await first.stop()
  small.intercept = () => null
  runTestAgent(t, config)
  await channelOpen(small)
  const asked = small.calls.filter(({ path: called }) => called === '/v1/enroll').map(({ body }) => body['csr'])
  assert.ok(asked.length >= 2)
  assert.equal(new Set(asked).size, 1)
})

test('a renewal opens the new channel before it closes the old one, and drops the previous key once it works', async (t) => {
  const small = await plane(t)
  small.profile.lifetime_ms = 8_000
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await channelOpen(small)
  const [old] = small.channels
  let openWhenOldClosed = 0
  old!.socket.on('close', () => (openWhenOldClosed = small.channels.length))
  await channelOpen(small, 2)
  await eventually('the old channel to be closed', () => openWhenOldClosed > 0)
  assert.ok(openWhenOldClosed >= 2)
  assert.notEqual(small.channels[1]?.serial, old?.serial)
  const renewal = small.calls.find(({ path: called }) => called.endsWith('/renew'))
  assert.equal(renewal?.serial, old?.serial)
  const state = await eventually('the new key to be proven', () => {
    const { identity } = stateOf(config.stateFolder)
    return identity?.current.proven === true && identity.current.serial !== old?.serial ? identity : null
  })
  assert.equal(state.previous, null)
})

test('a lost reply to a renewal is repeated with the same request', async (t) => {
  const small = await plane(t)
  small.profile.lifetime_ms = 12_000
  let lost = 0
  small.intercept = (called) => (called.endsWith('/renew') && lost++ < 1 ? 'lost' : null)
  runTestAgent(t, testAgentConfig(t, small.join, {}))
  await channelOpen(small, 2)
  const asked = small.calls.filter(({ path: called }) => called.endsWith('/renew')).map(({ body }) => body['csr'])
  assert.equal(asked.length, 2)
  assert.equal(asked[0], asked[1])
})

const filesWithKeys = (folder: string): string[] =>
  fs.readdirSync(folder).filter((name) => fs.readFileSync(path.join(folder, name), 'utf8').includes('PRIVATE KEY'))

test('with its key in memory nothing secret reaches the disk', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, { ...small.join, secret: null }, { joinMethod: 'hardware', keyStorage: 'memory' })
  runTestAgent(t, config)
  await channelOpen(small)
  assert.equal(small.calls[0]?.body['method'], 'hardware')
  assert.equal(small.calls[0]?.body['enrollment_token'], undefined)
  assert.deepEqual(filesWithKeys(config.stateFolder), [])
})

test('a profile that keeps keys in memory takes an open request off the disk', async (t) => {
  const small = await plane(t)
  small.profile.key_storage = 'memory'
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await channelOpen(small)
  assert.deepEqual(filesWithKeys(config.stateFolder), [])
})

test('a used token ends the agent with the code, the sentence and what to do', async (t) => {
  const small = await plane(t)
  small.intercept = () => refusal(403, 'TOKEN_USED')
  const outcome = await runTestAgent(t, testAgentConfig(t, small.join, {})).outcome
  assert.equal(outcome.kind, 'refused')
  if (outcome.kind !== 'refused') return
  const { code, text, next } = outcome.trouble
  assert.deepEqual({ code, text, next }, { code: 'TOKEN_USED', text: 'TOKEN_USED it is.', next: 'do something' })
})

test('an identity that is still active elsewhere is asked for again until it is free, and the status says so', async (t) => {
  const small = await plane(t)
  let taken = true
  small.intercept = (called) => (called === '/v1/enroll' && taken ? refusal(409, 'ALREADY_ACTIVE') : null)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await eventually('the status to say so', () =>
    statusOf(config.stateFolder).troubles.some(({ code }) => code === 'ALREADY_ACTIVE'),
  )
  taken = false
  await channelOpen(small)
})

test('a revoked node stops; its agent says so', async (t) => {
  const small = await plane(t)
  const { outcome } = runTestAgent(t, testAgentConfig(t, small.join, {}))
  await channelOpen(small)
  small.refuseChannel = refusal(403, 'NODE_REVOKED')
  small.channels[0]?.socket.terminate()
  assert.equal((await outcome).kind, 'revoked')
})

test('a node in quarantine stays up and says why', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await channelOpen(small)
  small.refuseChannel = refusal(403, 'NODE_QUARANTINED')
  small.channels[0]?.socket.terminate()
  await eventually('the status to say so', () =>
    statusOf(config.stateFolder).troubles.some(({ code }) => code === 'NODE_QUARANTINED'),
  )
})

test('a node that has to join again does so by its hardware, without an operator', async (t) => {
  const small = await plane(t)
  runTestAgent(t, testAgentConfig(t, { ...small.join, secret: null }, { joinMethod: 'hardware', keyStorage: 'memory' }))
  await channelOpen(small)
  small.refuseChannel = refusal(403, 'REJOIN_REQUIRED')
  small.channels[0]?.socket.terminate()
  await eventually('a second enrollment', () => paths(small).filter((called) => called === '/v1/enroll').length === 2)
  small.refuseChannel = null
  await channelOpen(small, 2)
})

test('an agent that cannot keep its certificate reports it, works from memory, and writes it when it can', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  const blocker = path.join(config.stateFolder, 'identity.json.new')
  small.intercept = (called) => {
    // The request was written; before the answer arrives a folder takes the place the next write needs.
    if (called === '/v1/enroll') fs.mkdirSync(blocker)
    return null
  }
  runTestAgent(t, config)
  await channelOpen(small)
  const confirm = small.calls.find(({ path: called }) => called.endsWith('/confirm'))
  assert.equal(confirm?.body['persisted'], false)
  assert.equal(typeof confirm?.body['detail'], 'string')
  assert.equal(stateOf(config.stateFolder).identity, null)
  fs.rmdirSync(blocker)
  await eventually(
    'the plane to be told that it is kept now',
    () => small.calls.some(({ body }) => body['persisted'] === true),
    { withinMs: 30_000 },
  )
  assert.notEqual(stateOf(config.stateFolder).identity, null)
})

test('while the state folder cannot be written no request is sent', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  fs.mkdirSync(path.join(config.stateFolder, 'identity.json.new'), { recursive: true })
  runTestAgent(t, config)
  await eventually('the status to say so', () =>
    statusOf(config.stateFolder).troubles.some(({ code }) => code === 'disk_trouble'),
  )
  assert.deepEqual(small.calls, [])
})

test('damaged credentials are not thrown away: the agent says so and stops', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  fs.mkdirSync(config.stateFolder)
  fs.writeFileSync(path.join(config.stateFolder, 'identity.json'), '{"version":1,"identity":{"keyPem":"secret"}}')
  const outcome = await runTestAgent(t, config).outcome
  assert.equal(outcome.kind, 'misconfigured')
  assert.ok(!JSON.stringify(outcome).includes('secret'))
  assert.ok(fs.existsSync(path.join(config.stateFolder, 'identity.json')))
})

test('with neither an identity nor a join string the agent says what is missing', async (t) => {
  const small = await plane(t)
  const folder = tempFolder(t)
  const config = testAgentConfig(t, small.join, { join: { kind: 'file', path: path.join(folder, 'join') } })
  const outcome = await runTestAgent(t, config).outcome
  if (outcome.kind !== 'misconfigured') assert.fail(outcome.kind)
  assert.equal(outcome.trouble.code, 'no_identity')
  assert.match(outcome.trouble.next, /into \/etc\/muster\/join,/)
})
