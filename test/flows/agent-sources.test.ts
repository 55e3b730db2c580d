// Where an identity comes from: better sources take over like a renewal does, and a certificate of the image is nobody.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { IdentityProvider, Need, Provided } from '#agent/state/provider.ts'
import type { BetterSources } from '#agent/main.ts'
import { openNudging } from '#agent/core/pause.ts'
import { trouble } from '#agent/core/trouble.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { systemRandom } from '#platform/random.ts'
import { startSmallPlane, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { day, hierarchy, leaf, nodeOrder, type Hierarchy } from '../vectors/pki-hierarchy.ts'

const pemOf = (...certificates: { certificate: { der: Uint8Array } }[]): string =>
  certificates.map(({ certificate }) => toPem('CERTIFICATE', certificate.der)).join('')

const certified = ({ issuing, domainCa }: Hierarchy) => {
  const key = generateKey('p256')
  const order = nodeOrder(key, { issuedAtMs: Date.now(), lifetimeMs: day })
  const made = leaf(key, order, issuing)
  return { keyPem: key.pkcs8Pem(), chainPem: pemOf(made, issuing, domainCa), serial: made.certificate.serial }
}

/** What another source would have made for this node. */
const identityBy = (small: SmallPlane, endpoints: Identity['endpoints']): Identity => ({
  source: 'spire',
  nodeId: 'gpu-001',
  domain: 'example.test',
  epoch: 1,
  profile: small.profile,
  endpoints,
  roots: [pemOf(small.authorities.root)],
  trustRevision: 0,
  withdrawnIssuers: [],
  issuerRoots: { revision: 0, roots: [] },
  graceMs: 300_000,
  understands: [],
  marked: false,
  origin: { url: small.join.url, rootFingerprint: small.join.rootFingerprint, usedSecretHash: null },
  counter: null,
  recovery: null,
  clockToleranceMs: 300_000,
  current: {
    ...certified(small.authorities),
    rootPem: null,
    proven: false,
    issuedAtMs: Date.now(),
    notAfterMs: Date.now() + day,
  },
  previous: null,
})

type Asked = (agent: AgentParts, need: Need) => Provided

const source = (answer: Asked): BetterSources => {
  const provider = (agent: AgentParts): IdentityProvider => ({
    source: 'spire',
    provide: (need) => Promise.resolve(answer(agent, need)),
  })
  return (agent) => [provider(agent)]
}

const statusOf = (folder: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, 'status.json'), 'utf8')) as { source?: string }

const setUp = async (t: TestContext) => {
  const small = await startSmallPlane(t, Date.now())
  const nudging = openNudging()
  const config = testAgentConfig(t, small.join, {})
  const run = (better: BetterSources, change: Partial<typeof config> = {}) =>
    runTestAgent(t, { ...config, ...change }, 0, systemRandom, { nudge: nudging.nudge }, better)
  return { small, nudging, config, run }
}

test('a better source that appears later takes over like a renewal: the new channel opens, then the old one closes', async (t) => {
  const { small, nudging, config, run } = await setUp(t)
  let isThere = false
  let given: Identity | null = null
  run(
    source((agent, need) => {
      const { identity } = agent.keeper.credentials()
      if (!isThere || need !== 'better' || identity === null) return { kind: 'not-mine' }
      given ??= identityBy(small, identity.endpoints)
      agent.keeper.keep({ identity: given, request: null })
      return { kind: 'identity' }
    }),
  )
  await eventually('a channel', () => small.channels.length === 1)
  await eventually('the source', () => statusOf(config.stateFolder).source === 'plane')
  let closedWith = 0
  small.channels[0]?.socket.on('close', () => (closedWith = small.channels.length))
  isThere = true
  nudging.fire()
  await eventually('a channel with the better identity', () =>
    small.channels.some(({ serial }) => serial === given?.current.serial),
  )
  await eventually('the old one to close', () => closedWith >= 2)
  await eventually('the source to be told', () => statusOf(config.stateFolder).source === 'spire')
})

test('a better source that is broken does not take away the plane', async (t) => {
  const { small, config, run } = await setUp(t)
  const what = trouble('socket_broken', 'The socket is there and does not answer.', 'Look at it')
  run(source(() => ({ kind: 'broken', trouble: what })))
  await eventually('a channel', () => small.channels.length === 1)
  await eventually('the source', () => statusOf(config.stateFolder).source === 'plane')
})

test('a better source ends the search for a plane that is away', async (t) => {
  const { small, nudging, config, run } = await setUp(t)
  const first = runTestAgent(t, config)
  await eventually('a channel', () => small.channels.length === 1)
  await first.stop()
  const file = path.join(config.stateFolder, 'identity.json')
  const { identity } = JSON.parse(fs.readFileSync(file, 'utf8')) as { identity: Identity }
  const nowhere = { ...small.join, url: 'https://127.0.0.1:1' }
  const stateFolder = path.join(tempFolder(t), 'state')
  let asked = 0
  run(
    source((agent, need) => {
      asked += 1
      if (need !== 'better') return { kind: 'not-mine' }
      agent.keeper.keep({ identity: identityBy(small, identity.endpoints), request: null })
      return { kind: 'identity' }
    }),
    { stateFolder, join: { kind: 'given', join: nowhere, envFile: null } },
  )
  await eventually('the search to have begun', () => asked === 1)
  nudging.fire()
  await eventually('a channel by the better source', () => small.channels.length === 2)
  await eventually('the source', () => statusOf(stateFolder).source === 'spire')
})

test('where the network asks for a certificate, the one of the image is shown, and the node gets its own identity', async (t) => {
  const image = hierarchy('p256', Date.now())
  const small = await startSmallPlane(t, Date.now(), pemOf(image.root))
  const { keyPem, chainPem, serial } = certified(image)
  const folder = tempFolder(t)
  const bootstrap = { certificateFile: path.join(folder, 'cert.pem'), keyFile: path.join(folder, 'key.pem') }
  fs.writeFileSync(bootstrap.certificateFile, chainPem)
  fs.writeFileSync(bootstrap.keyFile, keyPem)
  const config = testAgentConfig(t, small.join, { bootstrap })
  runTestAgent(t, config)
  await eventually('a channel', () => small.channels.length === 1)
  assert.equal(small.calls[0]?.path, '/v1/enroll')
  assert.equal(small.calls[0]?.serial, serial)
  assert.notEqual(small.channels[0]?.serial, serial)
  await eventually('the source', () => statusOf(config.stateFolder).source === 'plane')
  assert.doesNotMatch(fs.readFileSync(path.join(config.stateFolder, 'identity.json'), 'utf8'), new RegExp(serial))
})

test('without the certificate of the image such a network lets no machine through; a broken one does not keep it from trying', async (t) => {
  const small = await startSmallPlane(t, Date.now(), pemOf(hierarchy('p256', Date.now()).root))
  const nowhere = { certificateFile: '/nowhere/cert.pem', keyFile: '/nowhere/key.pem' }
  for (const bootstrap of [null, nowhere]) {
    const config = testAgentConfig(t, small.join, { bootstrap })
    const agent = runTestAgent(t, config)
    const troubles = (): string =>
      fs.existsSync(path.join(config.stateFolder, 'status.json'))
        ? fs.readFileSync(path.join(config.stateFolder, 'status.json'), 'utf8')
        : ''
    await eventually('trouble', () => /endpoint_unreachable/.test(troubles()))
    assert.equal((await agent.stop()).kind, 'stopped')
  }
  assert.equal(small.calls.length, 0)
})
