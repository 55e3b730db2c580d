// Planes that are broken, malicious or newer, and machines that are set up badly: the agent neither dies nor runs in circles.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { systemRandom } from '#platform/random.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { refusal, startSmallPlane, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hierarchy } from '../vectors/pki-hierarchy.ts'
import { toPem } from '#pki/pem.ts'

const plane = (t: TestContext): Promise<SmallPlane> => startSmallPlane(t, Date.now())
const count = (small: SmallPlane, ending: string): number =>
  small.calls.filter(({ path: called }) => called.endsWith(ending)).length
const channelOpen = (small: SmallPlane, atLeast = 1) =>
  eventually(`${atLeast} channels`, () => small.channels.length >= atLeast)
const troubleCodes = (folder: string): string[] =>
  (
    JSON.parse(fs.readFileSync(path.join(folder, 'status.json'), 'utf8')) as { troubles: { code: string }[] }
  ).troubles.map(({ code }) => code)

test('a plane that hands out identities and then takes none of them is not asked in a circle', async (t) => {
  const small = await plane(t)
  small.refuseChannel = refusal(403, 'REJOIN_REQUIRED')
  runTestAgent(t, testAgentConfig(t, { ...small.join, secret: null }, { joinMethod: 'hardware', keyStorage: 'memory' }))
  await eventually('a second enrollment', () => count(small, '/enroll') === 2)
  await sleep(1_500)
  assert.equal(count(small, '/enroll'), 2)
})

test('an agent whose clock is hours fast says so, goes by the time of the plane, and renews nothing for it', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config, 20 * 3_600_000)
  await channelOpen(small)
  await eventually('the agent to say so', () => troubleCodes(config.stateFolder).includes('clock_skew'))
  await sleep(2_500)
  assert.equal(count(small, '/renew'), 0)
})

test('a plane that cuts every channel at once is asked less and less often', async (t) => {
  const small = await plane(t)
  const slowest = { ...systemRandom, unit: () => 0.999 }
  runTestAgent(t, testAgentConfig(t, small.join, {}), 0, slowest)
  const cutting = setInterval(() => small.channels.forEach(({ socket }) => socket.terminate()), 5)
  t.after(() => clearInterval(cutting))
  await channelOpen(small)
  await sleep(4_500)
  // After 0, 1 and 3 seconds.
  assert.equal(small.channels.length, 3)
})

test('no environment variable makes the agent talk to a server that is not its plane', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await channelOpen(small)
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.after(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const other = toPem('CERTIFICATE', hierarchy('p256', Date.now()).root.certificate.der)
  // One after the other: roots that have none in common with those in use are not taken.
  for (const [revision, roots] of [
    [9, [other, toPem('CERTIFICATE', small.authorities.root.certificate.der)]],
    [10, [other]],
  ] as const) {
    small.sendOn(0, 'trust', { revision, roots: [...roots] })
    await eventually('the roots to be replaced', () =>
      small.channels[0]?.frames.some(({ type, body }) => type === 'applied' && body['trust_revision'] === revision),
    )
  }
  small.channels[0]?.socket.terminate()
  await eventually('the agent to say so', () => troubleCodes(config.stateFolder).includes('server_tls_untrusted'))
  assert.equal(small.channels.length, 1)
})

test('a revoked node with a token it has not used yet joins with that', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  const first = runTestAgent(t, config)
  await channelOpen(small)
  await first.stop()
  small.refuseChannel = refusal(403, 'NODE_REVOKED')
  small.intercept = (called) => {
    if (called === '/v1/enroll') small.refuseChannel = null
    return null
  }
  const join = { ...small.join, secret: `enroll_${'b'.repeat(43)}` }
  runTestAgent(t, { ...config, join: { kind: 'given', join, envFile: null } })
  await channelOpen(small, 2)
  assert.equal(
    small.calls.findLast(({ path: called }) => called === '/v1/enroll')?.body['enrollment_token'],
    join.secret,
  )
})

test('a hardware file that is not there is waited for, and said', async (t) => {
  const small = await plane(t)
  const file = path.join(tempFolder(t), 'hardware.json')
  const config = testAgentConfig(t, small.join, { hardwareFile: file })
  runTestAgent(t, config)
  await eventually('the agent to say so', () => troubleCodes(config.stateFolder).includes('hardware_file_unusable'))
  assert.deepEqual(small.calls, [])
  fs.writeFileSync(file, JSON.stringify({ macs: ['52:54:00:12:34:56'], bmc_serial: null }))
  await channelOpen(small)
})

test('a used join string that a killed agent left behind is deleted at the next start', async (t) => {
  const small = await plane(t)
  const file = path.join(tempFolder(t), 'join')
  const config = testAgentConfig(t, small.join, {})
  const first = runTestAgent(t, config)
  await channelOpen(small)
  await first.stop()
  fs.writeFileSync(file, formatJoinString(small.join))
  runTestAgent(t, { ...config, join: { kind: 'file', path: file } })
  await channelOpen(small, 2)
  assert.equal(fs.existsSync(file), false)
})

test('a join string behind a link is used, and neither it nor the link is deleted', async (t) => {
  const small = await plane(t)
  const folder = tempFolder(t)
  const [file, link] = [path.join(folder, 'join'), path.join(folder, 'link')]
  fs.writeFileSync(file, formatJoinString(small.join))
  fs.symlinkSync(file, link)
  runTestAgent(t, testAgentConfig(t, small.join, { join: { kind: 'file', path: link } }))
  await channelOpen(small)
  assert.ok(fs.lstatSync(link).isSymbolicLink() && fs.existsSync(file))
})

test('a state folder that others may write in is not used', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  fs.mkdirSync(config.stateFolder)
  fs.chmodSync(config.stateFolder, 0o777)
  const outcome = await runTestAgent(t, config).outcome
  assert.equal(outcome.kind === 'misconfigured' && outcome.trouble.code, 'state_folder_unsafe')
  assert.deepEqual([small.calls, fs.readdirSync(config.stateFolder)], [[], []])
})

test('of two agents that start on one state folder at the same moment one runs', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  const outcome = await runTestAgent(t, config).outcome
  assert.equal(outcome.kind === 'misconfigured' && outcome.trouble.code, 'state_in_use')
  await channelOpen(small)
})

test('a file of another user in the place of the next key is neither written into nor followed', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  const target = path.join(tempFolder(t), 'target')
  fs.writeFileSync(target, 'precious')
  fs.mkdirSync(config.stateFolder, { mode: 0o700 })
  fs.symlinkSync(target, path.join(config.stateFolder, 'identity.json.new'))
  runTestAgent(t, config)
  await channelOpen(small)
  assert.equal(fs.readFileSync(target, 'utf8'), 'precious')
})

test('a configuration that cannot be written is not called kept, not even when it is sent again', async (t) => {
  const small = await plane(t)
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  await channelOpen(small)
  const file = path.join(config.stateFolder, 'config.json')
  fs.mkdirSync(`${file}.new`)
  const { endpoints } = (
    JSON.parse(fs.readFileSync(path.join(config.stateFolder, 'identity.json'), 'utf8')) as {
      identity: { endpoints: object }
    }
  ).identity
  const frame = { revision: 7, vcluster: null, profile: small.profile, endpoints }
  small.sendOn(0, 'config', frame)
  small.sendOn(0, 'config', frame)
  const answers = await eventually('two answers', () => {
    const all = small.channels[0]?.frames.filter(({ type }) => type === 'applied') ?? []
    return all.length === 2 ? all : null
  })
  assert.deepEqual(
    answers.map(({ body }) => body['persisted']),
    [false, false],
  )
})

test('an answer that could not be read back from the disk is not taken', async (t) => {
  const small = await plane(t)
  small.enrollAnswer = { liveness_grace_ms: -1 }
  const config = testAgentConfig(t, small.join, {})
  const outcome = await runTestAgent(t, config).outcome
  assert.equal(outcome.kind === 'refused' && outcome.trouble.code, 'ANSWER_UNUSABLE')
})
