// The outputs of a node, from its agent's side: against a small plane that answers the two calls as a real one would.

import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { Value } from 'typebox/value'
import type { AgentConfig } from '#agent/core/config.ts'
import { readStatus, statusPath, type StatusFile } from '#agent/diagnostics/status-file.ts'
import { startHelper, type RunningHelper } from '#agent/helper/main.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { AgentFrame } from '#wire/channel/channel.ts'
import { rootsHash } from '#pki/pem.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { hostOfPrograms } from '../fakes/host-of-programs.ts'
import {
  certificatePem,
  outputOf,
  programsAuthority,
  type LeafWish,
  type ProgramsAuthority,
} from '../fakes/programs-authority.ts'
import { refusal, startSmallPlane, type Reply, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig, type TestAgent } from '../fakes/test-agent.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import { tempFolder } from '../process/temp-folder.ts'

type Stage = {
  readonly small: SmallPlane
  readonly authority: ProgramsAuthority
  readonly config: AgentConfig
  readonly folder: string
  readonly agent: TestAgent
  /** What the plane has configured, by name. */
  readonly outputs: Map<string, ConfigOutput>
  /** How its leaves differ from what they should be. */
  wish: Partial<LeafWish>
  /** Takes the place of a leaf while it returns something. */
  refuse: () => Reply | null
  configure(...outputs: ConfigOutput[]): Promise<void>
  frames(type: string): Record<string, unknown>[]
  calls(of: RegExp): { path: string; body: Record<string, unknown> }[]
}

const programCall = /\/v1\/nodes\/gpu-001\/programs\/([a-z0-9-]+)$/
const listsCall = /\/v1\/nodes\/gpu-001\/program-lists$/

const stage = async (t: TestContext, change: Partial<AgentConfig> = {}, offers = ['outputs']): Promise<Stage> => {
  const small = await startSmallPlane(t, Date.now())
  const authority = programsAuthority(Date.now())
  const folder = path.join(tempFolder(t), 'outputs')
  const config = testAgentConfig(t, small.join, { publish: folder, ...change })
  const outputs = new Map<string, ConfigOutput>()
  small.capabilities = offers
  small.intercept = (path) => {
    if (listsCall.test(path)) return { status: 200, body: authority.lists() }
    const [, name] = programCall.exec(path) ?? []
    const output = outputs.get(name ?? '')
    if (name === undefined) return null
    if (output === undefined) return refusal(404, 'NOT_FOUND')
    const csr = small.calls.at(-1)?.body['csr']
    const refused = it.refuse()
    return refused ?? { status: 200, body: authority.leafFor(String(csr), output, it.wish) }
  }
  const agent = runTestAgent(t, config)
  await eventually('a channel', () => (small.channels[0]?.frames.length ?? 0) > 0)
  let revision = 6
  const it: Stage = {
    small,
    authority,
    config,
    folder,
    agent,
    outputs,
    wish: {},
    refuse: () => null,
    configure: async (...wanted) => {
      outputs.clear()
      for (const output of wanted) outputs.set(output.name, output)
      const { endpoints } = small
      const said = { vcluster: null, profile: small.profile, endpoints, wireguard: null, outputs: wanted }
      const channel = small.channels.length - 1
      const before = it.frames('applied').length
      small.sendOn(channel, 'config', { revision: ++revision, ...said })
      await eventually('the configuration', () => it.frames('applied').length > before)
    },
    frames: (type) =>
      small.channels
        .flatMap(({ frames }) => frames)
        .filter((frame) => frame.type === type)
        .map(({ body }) => body),
    calls: (of) => small.calls.filter(({ path }) => of.test(path)),
  }
  return it
}

const file = ({ folder }: Stage, name: string, output = 'web'): string => path.join(folder, output, name)
const read = (on: Stage, name: string, output = 'web'): string => fs.readFileSync(file(on, name, output), 'utf8')
const leafIn = (on: Stage, output = 'web'): X509Certificate => new X509Certificate(read(on, 'cert.pem', output))
const serialIn = (on: Stage, output = 'web'): string => leafIn(on, output).serialNumber.toLowerCase().replace(/^0+/, '')
const isThere = (on: Stage, output = 'web'): boolean => fs.existsSync(file(on, 'cert.pem', output))

type State = { name: string; place: string | null; serial: string | null; failure: string | null }
const lastState = (on: Stage): State[] => (on.frames('outputs_state').at(-1)?.['outputs'] ?? []) as State[]

test('an output gets a key and a leaf of its own, with lists that OpenSSL takes, and the plane learns what is in place', async (t) => {
  const on = await stage(t)
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  const leaf = leafIn(on)
  assert.equal(
    leaf.subjectAltName,
    'DNS:web.example.test, URI:spiffe://example.test/node/gpu-001/program/web, IP Address:10.0.0.7',
  )
  assert.ok(leaf.checkPrivateKey(createPrivateKey(read(on, 'key.pem'))))
  const own = keptIdentity(on.config.stateFolder)?.current.keyPem ?? ''
  assert.notEqual(read(on, 'key.pem'), own)
  await eventually('its state', () => lastState(on)[0]?.serial === serialIn(on))
  assert.deepEqual(lastState(on), [
    { name: 'web', place: path.join(on.folder, 'web'), serial: serialIn(on), failure: null },
  ])
  assert.equal(on.calls(programCall).length, 1)
  assert.ok(on.small.channels.flatMap(({ frames }) => frames).every((frame) => Value.Check(AgentFrame, frame)))
  assert.deepEqual(fs.readdirSync(path.join(on.folder, 'web')).sort(), [
    'bundle.p12',
    'bundle.password',
    'cert.pem',
    'combined.pem',
    'crl-issuing.pem',
    'crl.pem',
    'key.pem',
    'roots.pem',
  ])
  assert.equal(read(on, 'combined.pem'), read(on, 'key.pem') + read(on, 'cert.pem'))

  // The programs root never gets among those that are trusted for a plane.
  const root = read(on, 'roots.pem')
  assert.ok(
    !fs
      .readFileSync(path.join(on.config.stateFolder, 'identity.json'), 'utf8')
      .includes(JSON.stringify(root).slice(1, -1)),
  )
  assert.ok(
    fs.readFileSync(path.join(on.config.stateFolder, 'program-lists.json'), 'utf8').includes(JSON.stringify(root)),
  )

  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const args = ['-CAfile', file(on, 'roots.pem'), '-untrusted', file(on, 'cert.pem'), '-crl_check_all', '-CRLfile']
  const verify = (list: string) =>
    spawnSync(openssl, ['verify', ...args, file(on, list), file(on, 'cert.pem')], { encoding: 'utf8' })
  assert.match(verify('crl.pem').stdout, /: OK/)
  // etcd reads one list, and OpenSSL asks for the root's as well.
  assert.match(verify('crl-issuing.pem').stderr, /unable to get certificate CRL/)
})

test('lists are fetched at once when the plane says that there are newer ones, and never go back in number', async (t) => {
  const on = await stage(t)
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  const announce = (number: number): void => {
    const lists = on.authority.lists().lists.map(({ issuer }) => ({ issuer, number }))
    on.small.sendOn(0, 'program_lists', { lists })
  }
  const before = read(on, 'crl.pem')
  const serial = serialIn(on)
  on.authority.number = 5
  on.authority.revoked = [{ serial: 'beef', atMs: Date.now(), reason: 'key-compromise' }]
  announce(5)
  await eventually('the newer lists', () => read(on, 'crl.pem') !== before)
  assert.equal(serialIn(on), serial)
  const newer = read(on, 'crl.pem')
  assert.ok(newer.startsWith(read(on, 'crl-issuing.pem')))
  assert.equal(newer.match(/BEGIN X509 CRL/g)?.length, 2)

  // Announced numbers that the node has are no reason to ask; a plane from before it was restored gives older lists.
  const asked = on.calls(listsCall).length
  announce(5)
  on.authority.number = 3
  on.authority.revoked = []
  announce(6)
  await eventually('another call', () => on.calls(listsCall).length > asked)
  on.authority.number = 7
  announce(7)
  await eventually('lists with a higher number', () => read(on, 'crl.pem') !== newer)
  assert.equal(on.calls(listsCall).length, asked + 2)
})

/** The leaves of its outputs hang below another root. */
const signedOutside = (on: Stage, corp: ProgramsAuthority) => {
  const outside = { outside_roots: [certificatePem(corp.root)] }
  const { intercept } = on.small
  on.small.intercept = (path) => {
    const usual = intercept(path)
    if (usual === null || usual === 'lost' || usual.status !== 200) return usual
    const leaf = () => corp.leafFor(String(on.small.calls.at(-1)?.body['csr']), outputOf(), on.wish)
    const body = programCall.test(path)
      ? { ...leaf(), ...on.authority.lists(), ...outside }
      : { ...usual.body, ...outside }
    return { status: 200, body }
  }
  return outside
}

test('a leaf of an outside issuer may begin long before it was ordered, and lives no longer than it may', async (t) => {
  const corp = programsAuthority(Date.now())
  const on = await stage(t)
  signedOutside(on, corp)
  const output = outputOf()
  on.wish = { lifetimeMs: output.lifetime_ms + 6 * 60_000 }
  await on.configure(output)
  await eventually('the failure', () => /lives longer than it may/.test(lastState(on)[0]?.failure ?? ''))
  // Its clock is behind, and the end is the one that was asked for.
  const behindMs = 9 * 60_000
  on.wish = { issuedAtMs: Date.now() - behindMs, lifetimeMs: output.lifetime_ms + behindMs }
  await on.configure(output)
  await eventually('the files', () => isThere(on))
})

test('a leaf below the root of an outside issuer is put in place without lists of its authorities, and both roots are with it', async (t) => {
  const corp = programsAuthority(Date.now())
  const on = await stage(t)
  const outside = signedOutside(on, corp)
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  assert.equal(read(on, 'roots.pem'), certificatePem(on.authority.root) + certificatePem(corp.root))
  assert.equal(read(on, 'crl.pem').match(/BEGIN X509 CRL/g)?.length, 2, 'those of the programs root and its CA')
  // A plane that has not said that it understands it is not told.
  assert.deepEqual(Object.keys(on.calls(programCall)[0]?.body ?? {}), ['csr'])

  // Another issuer is named: verifiers get its root at once.
  const other = programsAuthority(Date.now())
  outside.outside_roots.push(certificatePem(other.root))
  const numbers = on.authority.lists().lists.map(({ issuer, number }) => ({ issuer, number }))
  on.small.sendOn(0, 'program_lists', { lists: numbers, outside_roots: rootsHash(outside.outside_roots) })
  await eventually('its root', () => read(on, 'roots.pem').includes(certificatePem(other.root)))
  const asked = on.calls(listsCall).length
  on.small.sendOn(0, 'program_lists', { lists: numbers, outside_roots: rootsHash(outside.outside_roots) })
  await on.configure(outputOf({ usage: 'both' }))
  assert.equal(on.calls(listsCall).length, asked, 'what it has is not fetched again')

  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const trusted = ['-CAfile', file(on, 'roots.pem'), '-untrusted', file(on, 'cert.pem')]
  const verify = (...more: string[]) =>
    spawnSync(openssl, ['verify', ...trusted, ...more, file(on, 'cert.pem')], { encoding: 'utf8' })
  assert.match(verify('-purpose', 'sslserver', '-verify_hostname', 'web.example.test').stdout, /: OK/)
  // A program that checks lists refuses it: nobody here has those of its issuer.
  assert.match(verify('-crl_check_all', '-CRLfile', file(on, 'crl.pem')).stderr, /unable to get certificate CRL/)
})

test('a list of every issuing CA is in crl.pem, also of those above the leaves of others', async (t) => {
  const on = await stage(t)
  on.authority.anotherIssuing()
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  assert.equal(read(on, 'crl.pem').match(/BEGIN X509 CRL/g)?.length, 3)
  assert.equal(read(on, 'crl-issuing.pem').match(/BEGIN X509 CRL/g)?.length, 1)
})

test('other names, another key type and another usage are reasons for another leaf, and an output that is gone takes its files along', async (t) => {
  const on = await stage(t)
  const web = outputOf()
  await on.configure(web, outputOf({ name: 'db', usage: 'both', names: [] }))
  await eventually('both', () => isThere(on) && isThere(on, 'db'))
  const serials = new Set([serialIn(on)])
  for (const change of [{ names: ['dns:other.example.test'] }, { key_type: 'ed25519' }, { usage: 'both' }] as const) {
    await on.configure({ ...web, ...change, names: [...('names' in change ? change.names : web.names)] })
    await eventually('another leaf', () => !serials.has(serialIn(on)))
    serials.add(serialIn(on))
  }
  assert.equal(on.calls(programCall).length, 5)
  await eventually('the removal', () => !fs.existsSync(path.join(on.folder, 'db')))
  assert.deepEqual(
    fs.readdirSync(on.folder).filter((name) => name.startsWith('.muster.db.')),
    [],
  )
  await on.configure()
  await eventually('the removal', () => !fs.existsSync(path.join(on.folder, 'web')))
  await eventually('its state', () => on.frames('outputs_state').length > 0 && lastState(on).length === 0)
  const kept = fs.readFileSync(path.join(on.config.stateFolder, 'programs.json'), 'utf8')
  assert.ok(!kept.includes('PRIVATE KEY'))
})

test('a leaf is renewed with a new key in time, and a reader never sees a key without its certificate', async (t) => {
  const on = await stage(t)
  await on.configure(outputOf({ lifetime_ms: 2_000 }))
  await eventually('the files', () => isThere(on))
  const serials = new Set<string>()
  const mismatches: string[] = []
  await eventually('three leaves', () => {
    const at = fs.realpathSync(path.join(on.folder, 'web'))
    const leaf = new X509Certificate(fs.readFileSync(path.join(at, 'cert.pem')))
    if (!leaf.checkPrivateKey(createPrivateKey(fs.readFileSync(path.join(at, 'key.pem'))))) mismatches.push(at)
    serials.add(leaf.serialNumber)
    return serials.size >= 3
  })
  assert.deepEqual(mismatches, [])
})

test('a restart puts in place what is on the disk, and asks for no leaf that it has', async (t) => {
  const on = await stage(t)
  await on.configure(outputOf())
  await eventually('its state', () => lastState(on)[0]?.serial !== undefined && lastState(on)[0]?.serial !== null)
  const serial = serialIn(on)
  await on.agent.stop()
  fs.rmSync(on.folder, { recursive: true })
  const channels = on.small.channels.length
  runTestAgent(t, on.config)
  await eventually('the files', () => isThere(on))
  assert.equal(serialIn(on), serial)
  await eventually('a channel', () => on.small.channels.length > channels)
  await eventually('its state there', () =>
    (on.small.channels.at(-1)?.frames ?? []).some(({ type }) => type === 'outputs_state'),
  )
  assert.equal(on.calls(programCall).length, 1)
})

test('a plane that offers no outputs gets nothing new, and what is in place stays', async (t) => {
  const on = await stage(t, {}, [])
  await on.configure(outputOf())
  on.small.channels[0]?.socket.close()
  await eventually('another channel', () => (on.small.channels[1]?.frames.length ?? 0) > 0)
  assert.deepEqual([...on.calls(programCall), ...on.calls(listsCall), ...on.frames('outputs_state')], [])
  on.small.capabilities = ['outputs']
  on.small.channels[1]?.socket.close()
  await eventually('the files', () => isThere(on))
  const asked = on.calls(programCall).length
  // The plane is rolled back to one that sends no outputs.
  on.small.capabilities = []
  on.small.channels.at(-1)?.socket.close()
  const channels = on.small.channels.length
  await eventually('another channel', () => on.small.channels.length > channels)
  const { endpoints } = on.small
  const applied = on.frames('applied').length
  const said = { vcluster: null, profile: on.small.profile, endpoints, wireguard: null }
  on.small.sendOn(on.small.channels.length - 1, 'config', { revision: 90, ...said })
  await eventually('the configuration', () => on.frames('applied').length > applied)
  assert.ok(isThere(on))
  assert.equal(on.calls(programCall).length, asked)
})

test('what the plane gives is not taken where it is not what it should be, and the plane learns why', async (t) => {
  const wrong: [Partial<LeafWish>, RegExp][] = [
    [
      { uris: ['spiffe://example.test/node/gpu-002/program/web'] },
      /not for spiffe:\/\/example.test\/node\/gpu-001\/program\/web/,
    ],
    [{ names: ['dns:plane.example.test'] }, /is for dns:plane.example.test/],
    [{ lifetimeMs: 2 * 86_400_000 }, /lives longer than it may/],
    [{ usage: 'both' }, /is for clientAuth and serverAuth/],
    [{ issuedAtMs: Date.now() - 2 * 86_400_000 }, /has expired/],
  ]
  const on = await stage(t)
  for (const [wish, why] of wrong) {
    on.wish = wish
    await on.configure(outputOf())
    await eventually('the failure', () => why.test(lastState(on)[0]?.failure ?? ''))
  }
  assert.ok(!isThere(on))
  on.wish = {}
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  await eventually('its state', () => lastState(on)[0]?.failure === null)
})

test('a key that the plane will not certify is replaced by another', async (t) => {
  const on = await stage(t)
  let refused = 0
  on.refuse = () => (refused++ === 0 ? refusal(409, 'KEY_IN_USE', 0) : null)
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  const csrs = on.calls(programCall).map(({ body }) => body['csr'])
  assert.equal(new Set(csrs).size, 2)
})

test('an answer that was lost is asked for again with the same key', async (t) => {
  const on = await stage(t)
  let asked = 0
  const { intercept } = on.small
  on.small.intercept = (path) => (programCall.test(path) && asked++ === 0 ? 'lost' : intercept(path))
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  const csrs = on.calls(programCall).map(({ body }) => body['csr'])
  assert.deepEqual([csrs.length, new Set(csrs).size], [2, 1])
})

test('keys that stay in memory are in no file but those of the program', async (t) => {
  const on = await stage(t, { keyStorage: 'memory', recovery: 'none' })
  await on.configure(outputOf())
  await eventually('a leaf', () => on.calls(programCall).length > 0)
  // Whether the files may be written depends on where the tests keep theirs.
  await eventually('what became of it', () => isThere(on) || (lastState(on)[0]?.failure ?? null) !== null)
  const kept = fs.readdirSync(on.config.stateFolder).map((name) => path.join(on.config.stateFolder, name))
  const secrets = kept.filter(
    (name) => fs.statSync(name).isFile() && fs.readFileSync(name, 'utf8').includes('PRIVATE KEY'),
  )
  assert.deepEqual(secrets, [])
})

test('a node that is revoked keeps no key of a program', async (t) => {
  const on = await stage(t)
  await on.configure(outputOf())
  await eventually('the files', () => isThere(on))
  on.small.refuseChannel = refusal(403, 'NODE_REVOKED')
  on.small.channels.at(-1)?.socket.close()
  assert.equal((await on.agent.outcome).kind, 'revoked')
  assert.deepEqual(fs.readdirSync(on.folder), [])
  assert.deepEqual(readStatus(on.config.stateFolder)?.outputs, [])
  assert.ok(!fs.existsSync(path.join(on.config.stateFolder, 'programs.json')))
})

test('files that a helper wrote are removed when it is back, though the node was revoked and the agent restarted meanwhile', async (t) => {
  const host = hostOfPrograms(t, Date.now())
  const socket = path.join(host.folder, 'run', 'socket')
  const startIt = async (): Promise<RunningHelper> => {
    const helper = await startHelper(
      { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust },
      { agentToml: host.agentToml, socket: { path: socket }, agentUser: null, stateFolder: `${host.folder}/state` },
    )
    assert.ok('close' in helper, JSON.stringify(helper))
    cleanup(t, () => helper.close())
    return helper
  }
  const helper = await startIt()
  const on = await stage(t, { helperSocket: socket, agentToml: host.agentToml })
  fs.writeFileSync(path.join(host.folder, 'roots.pem'), certificatePem(on.authority.root))
  const web = outputOf()
  await on.configure({ ...web, files: { ...web.files, directory: host.tls } })
  await eventually('the files', () => fs.existsSync(path.join(host.tls, 'web', 'key.pem')))
  await helper.close()
  on.small.refuseChannel = refusal(403, 'NODE_REVOKED')
  on.small.channels.at(-1)?.socket.close()
  await eventually('the withdrawal', () =>
    fs.readFileSync(path.join(on.config.stateFolder, 'program-lists.json'), 'utf8').includes('"withdrawn": true'),
  )
  assert.ok(!fs.existsSync(path.join(on.config.stateFolder, 'programs.json')))
  const left = await eventually('what is left', () => {
    const { outputs } = JSON.parse(fs.readFileSync(statusPath(on.config.stateFolder), 'utf8')) as StatusFile
    return outputs?.[0]?.failure
  })
  assert.match(left, /tls\/web is left there: /)
  await on.agent.stop()
  assert.ok(fs.existsSync(path.join(host.tls, 'web', 'key.pem')))
  await startIt()
  assert.equal((await runTestAgent(t, on.config).outcome).kind, 'revoked')
  assert.deepEqual(fs.readdirSync(host.tls), [])
})
