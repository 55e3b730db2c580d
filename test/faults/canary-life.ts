// What happens to machines in years, in half a minute: they join in every way there is, renew, are copied, cut off, full,
// at the wrong time, expire, recover, are repaired; the plane dies and comes back; people look at all of it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { readStatusFile, type StatusFile } from '#agent/diagnostics/status-file.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { peer } from '../peers/peer.ts'
import { eventually, within } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import { journalEntries } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { selfSigned } from '../process/self-signed.ts'
import type { Agent } from '../process/start-agent.ts'
import { mountTmpfs } from '../process/tmpfs.ts'
import { takes, type Received } from '../process/webhook-receiver.ts'
import { secretIn, type World } from './canary-world.ts'

const busy = ['--report-every', '200ms', '--rehearse-every', '1s'] as const
const patience = { withinMs: 60_000, everyMs: 50 } as const

export type Machines = {
  readonly key: Agent
  readonly bearer: Agent
  readonly env: Agent
  readonly hardware: Agent
  /** A second invitation for `env`, made before it was used. */
  readonly spare: string
}

/** By a file, by standard input, by a variable and by hardware. */
export const join = async (world: World): Promise<Machines> => {
  const made = await world.operate('POST', '/v1/profiles', {
    name: 'brief',
    from: 'gpu-cloud',
    set: { 'certificate.lifetimeMs': 6_000, 'recovery.limit': 100 },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const many = { strangersPerMinute: 100_000, strangersPerMinutePerSource: 100_000 }
  assert.equal((await world.operate('PATCH', '/v1/domain', { set: many })).status, 200)
  const { ledger, put } = world
  const { keyPem, chainPem } = selfSigned('an image')
  ledger.learn('bootstrap key', 'image', keyPem)
  const image = { certificate: put('etc/static.crt', chainPem), key: put('etc/static.key', keyPem) }
  const [byFile, byInput, byVariable] = await Promise.all([
    world.invite('key-1', 'brief'),
    world.invite('bearer-1', 'brief'),
    world.invite('env-1'),
    hardwareNode(world),
  ])
  const spare = secretIn(await world.invite('env-1'))
  const keyPlace = put('joins/key-1/join', `${byFile}\n`)
  const withoutSecret = await world.muster(['ca', 'bundle', '--join'])
  const hardware = put('etc/hardware.json', JSON.stringify({ macs: [mac], bmc_serial: null }))
  world.look()
  const machines: Machines = {
    spare,
    key: world.startAgent('key-1', {
      args: [
        ...['--join-file', keyPlace, ...busy, '--metrics-listen', '127.0.0.1:0'],
        ...['--static-certificate', image.certificate, '--static-key', image.key],
      ],
    }),
    bearer: world.startAgent('bearer-1', { join: byInput, args: ['--recovery', 'bearer', ...busy] }),
    env: world.startAgent('env-1', { env: { MUSTER_JOIN: byVariable }, args: [...busy] }),
    hardware: world.startAgent('hw-1', { join: withoutSecret.stdout.trim(), args: ['--hardware-file', hardware] }),
  }
  await connected(world, ['key-1', 'bearer-1', 'env-1', 'hw-1'])
  assert.equal(fs.existsSync(keyPlace), false, 'the join file outlives its use')
  return machines
}

const mac = '52:54:00:12:34:56'

const hardwareNode = async (world: World): Promise<void> => {
  const { code } = await world.muster(['node', 'enroll', 'hw-1', '--mac', mac, '--profile', 'hpc-diskless'])
  assert.equal(code, 0)
}

const says = (world: World, name: string): StatusFile | null => readStatusFile(world.at('agents', name))

const isOpen = (world: World, name: string): boolean => says(world, name)?.channel.open === true

const connected = (world: World, names: readonly string[]): Promise<unknown> =>
  eventually(`channels of ${names.join(', ')}`, () => names.every((name) => isOpen(world, name)), patience)

/** Connected, in a newer epoch than this. */
const isBack = (world: World, name: string, before: number): Promise<unknown> =>
  eventually(
    `${name} to be back after epoch ${before}`,
    async () => {
      const { body } = await world.plane().api('GET', `/v1/nodes/${name}`)
      return body.channel_open && body.epoch > before
    },
    { ...patience, everyMs: 200 },
  )

/**
 * Into the WireGuard network, with programs in place of `ip` and `wg`: no interface is made here, and what they are given is seen.
 * The same machine has a certificate for a program.
 */
export const joinNetwork = async (world: World): Promise<void> => {
  const outputs = [{ name: 'web', files: { combined: true, pkcs12: true } }]
  const set = { 'wireguard.mode': 'required', outputs }
  const made = await world.operate('POST', '/v1/profiles', { name: 'meshed', from: 'gpu-cloud', set })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const programs = path.dirname(world.put('bin/.keep', ''))
  const seen = world.at('out/given-to-programs')
  fs.mkdirSync(path.dirname(seen), { recursive: true, mode: 0o700 })
  for (const name of ['ip', 'wg', 'wireguard-go']) {
    const script = `#!/bin/sh\n{ echo "${name} $*"; env; } >> ${seen}\n[ "$1 $2 $3" != "-j -d link" ]\n`
    fs.writeFileSync(path.join(programs, name), script, { mode: 0o700 })
  }
  const env = { PATH: `${programs}:${process.env['PATH'] ?? ''}` }
  const published = world.at('published/meshed-1')
  const join = await world.invite('meshed-1', 'meshed')
  const agent = world.startAgent('meshed-1', {
    join,
    env,
    args: ['--wireguard', 'muster9', '--publish', published, ...busy],
  })
  await connected(world, ['meshed-1'])
  const configured = (): boolean => fs.existsSync(seen) && fs.readFileSync(seen, 'utf8').includes('wg syncconf')
  await eventually('the interface to be configured', configured, patience)
  await eventually('the output to be in place', () => fs.existsSync(path.join(published, 'web', 'key.pem')), patience)
  world.look()
  await world.muster(['agent', 'status', '--state', agent.state])
  await world.muster(['agent', 'cert', 'show', 'web', '--state', agent.state])
  await world.muster(['node', 'show', 'meshed-1', '-o', 'json'])
  await agent.stop()
}

export const renewNow = async (world: World): Promise<void> => {
  const before = keptIdentity(world.at('agents/env-1')).current.serial
  const { code, stderr } = await world.muster(['agent', 'renew', '--now', '--state', world.at('agents/env-1')])
  assert.equal(code, 0, stderr)
  assert.notEqual(keptIdentity(world.at('agents/env-1')).current.serial, before)
}

/** A second machine from the disk of the first, while the first is up. */
export const startCopy = async (world: World): Promise<void> => {
  const copy = world.at('agents/copy-of-env-1')
  fs.cpSync(world.at('agents/env-1'), copy, { recursive: true })
  for (const name of ['status.json', 'agent.lock']) fs.rmSync(path.join(copy, name), { force: true })
  fs.chmodSync(copy, 0o700)
  const agent = world.startAgent('copy-of-env-1', {})
  await eventually(
    'the copy to be told what it is',
    async () => {
      const { body } = await world.plane().api('GET', '/v1/nodes/env-1')
      return JSON.stringify(body.conditions).includes('duplicate_identity')
    },
    patience,
  )
  await agent.stop()
}

/** Another key with a good token, while the node is active: an alert, and its delivery. */
export const raiseAlert = async (world: World, { spare }: Machines): Promise<void> => {
  const { receiver, ledger } = world
  const words = ledger.misplaced('the answer of a receiver')
  const isOfIt = ({ body }: Received): boolean => body.kind === 'spoof_suspected'
  // Only this one: alerts are delivered in their order, and one before it that is not taken would hold it up.
  receiver.answer = (received, response) =>
    isOfIt(received) ? void response.writeHead(503).end(words) : takes(received, response)
  const thief = rawNode(await world.plane().target(), 'p256')
  ledger.learn('key of an agent', 'a thief', thief.key.pkcs8Pem())
  const refused = await thief.enrollByToken(spare)
  world.evidence.keep('answer to a thief', JSON.stringify(refused.body))
  assert.equal(refused.body.code, 'ALREADY_ACTIVE')
  await eventually('an attempt to deliver the alert', () => receiver.received.some(isOfIt), patience)
  receiver.answer = takes
  await eventually('the alert to be delivered', () => receiver.taken.some(isOfIt), patience)
}

/** No room for a renewal but the reserve, and then not even that. */
export const fillDisk = async (world: World): Promise<void> => {
  if ('missing' in peer('tmpfs')) return
  const disk = mountTmpfs(world.t, world.at('agents/full-1'), 4 << 20)
  fs.chmodSync(disk.folder, 0o700)
  const agent = world.startAgent('full-1', { join: await world.invite('full-1') })
  await connected(world, ['full-1'])
  disk.fill(0)
  const renew = ['agent', 'renew', '--now', '--state', agent.state]
  assert.equal((await world.muster(renew)).code, 0)
  // The renewal may have used it up.
  fs.rmSync(path.join(agent.state, 'reserve'), { force: true })
  disk.fill(0)
  await world.muster(renew)
  world.look()
  disk.free()
  await agent.stop()
}

export const setClockWrong = async (world: World): Promise<void> => {
  const library = peer('faketime')
  if ('missing' in library) return
  const agent = world.startAgent('clock-1', { join: await world.invite('clock-1') })
  await connected(world, ['clock-1'])
  await agent.stop()
  const time = openFakeTime(world.at('etc'), library.path, 10 * 365 * 86_400_000)
  const wrong = world.startAgent('clock-1', { env: { ...time.env } })
  const seesSkew = (): boolean => /clock_skew/.test(JSON.stringify(says(world, 'clock-1')))
  await eventually('the clock to be found wrong', seesSkew, patience)
  await wrong.stop()
}

/** Off until their certificates are over; then by key, and by token. */
export const expireAndRecover = async (
  world: World,
  { key, bearer }: Machines,
): Promise<Pick<Machines, 'key' | 'bearer'>> => {
  await Promise.all([key.stop(), bearer.stop()])
  world.look()
  const before = ['key-1', 'bearer-1'].map((name) => ({ name, ...keptIdentity(world.at('agents', name)) }))
  const endMs = Math.max(...before.map(({ current }) => current.notAfterMs))
  await eventually('both certificates to be over', () => Date.now() > endMs + 200, patience)
  const again = {
    key: world.startAgent('key-1', { args: [...busy, '--metrics-listen', '127.0.0.1:0'] }),
    bearer: world.startAgent('bearer-1', { args: ['--recovery', 'bearer', ...busy] }),
  }
  await Promise.all(before.map(({ name, epoch }) => isBack(world, name, epoch)))
  return again
}

/** The plane is gone in the middle of a renewal, and then the agent, too. */
export const killBoth = async (world: World, env: Agent): Promise<Agent> => {
  await world.plane().kill9()
  env.signal('SIGUSR2')
  const file = world.at('agents/env-1/identity.json')
  await eventually('a request that nobody answers', () => requestIn(file) !== null, patience)
  world.look()
  await env.kill9()
  await world.restartPlane()
  const again = world.startAgent('env-1', { args: [...busy] })
  await eventually(
    'env-1 to be back',
    () => says(world, 'env-1')?.pid === again.pid && isOpen(world, 'env-1'),
    patience,
  )
  again.signal('SIGUSR2')
  await eventually('the request to be answered', () => requestIn(file) === null, patience)
  return again
}

const requestIn = (file: string): unknown => JSON.parse(fs.readFileSync(file, 'utf8')).request

/** A bundle from an operator's hands into a machine that keeps running. */
export const repair = async (world: World, agent: Agent): Promise<void> => {
  const out = world.at('out/env-1.repair.json')
  fs.mkdirSync(path.dirname(out), { recursive: true, mode: 0o700 })
  const made = await world.muster(['node', 'repair-bundle', 'env-1', '--reason', 'a test', '--out', out])
  assert.equal(made.code, 0, made.stderr)
  world.ledger.learn('repair token', 'env-1', JSON.parse(fs.readFileSync(out, 'utf8')).recovery_token)
  const used = world.at('agents/env-1/repair.json')
  // Held, so that the bundle can be seen before it is used.
  agent.signal('SIGSTOP')
  const given = await world.muster(['agent', 'repair', '--state', agent.state, '--bundle-file', out])
  assert.equal(given.code, 0, given.stderr)
  world.look()
  agent.signal('SIGCONT')
  await isBack(world, 'env-1', 1)
  assert.equal(fs.existsSync(used), false, 'the bundle outlives its use')
  await eventually(
    'a release that is allowed',
    async () => (await world.operate('POST', '/v1/nodes/env-1/release', {})).status === 200,
    { ...patience, everyMs: 300 },
  )
}

/** What people print. */
export const lookAround = async (world: World): Promise<void> => {
  const token = await world.muster(['token', 'create', '--node', 'typed-1'])
  world.ledger.learn('enrollment token', 'typed-1', secretIn(token.stdout))
  const key = await world.muster(['key', 'create', 'alice', '--role', 'operator'])
  world.ledger.learn("operator's key", 'alice', key.stdout.trim())
  world.put('etc/alice.key', key.stdout)
  const state = (name: string): readonly string[] => ['--state', world.at('agents', name)]
  const formats = ['cloud-init', 'env', 'script'] as const
  fs.mkdirSync(world.at('out'), { recursive: true, mode: 0o700 })
  const bundles = formats.map((format) => {
    const node = `bundled-${format}`
    const out = format === 'script' ? [] : ['--out', world.at(`out/${node}`)]
    return ['node', 'bundle', node, '--this-machine', '--format', format, ...out]
  })
  const commands: readonly (readonly string[])[] = [
    ...bundles,
    ['--key-file', world.at('etc/alice.key'), 'node', 'list', '--recoverable', '-o', 'json'],
    ['node', 'show', 'raw-words'],
    ['node', 'show', 'env-1', '-o', 'json'],
    ['node', 'explain', 'raw-words'],
    ['agent', 'status', ...state('key-1')],
    ['agent', 'explain', ...state('env-1')],
    ['agent', 'explain', ...state('copy-of-env-1'), '-o', 'json'],
    ['journal', 'list', '--last', '1000'],
    ['journal', 'export'],
    ['journal', 'verify'],
    ['ca', 'show'],
    ['alert', 'list', '--all', '-o', 'json'],
    [
      'ca',
      'init',
      '--data',
      world.at('offline'),
      '--root-out',
      world.at('stick'),
      '--seal-key',
      world.at('etc/seal.key'),
    ],
  ]
  fs.mkdirSync(world.at('stick'), { mode: 0o700 })
  await inParallel(commands, 3, async (args) => {
    const { code, stderr, stdout } = await world.muster(args)
    // Status and explain answer with what is wrong.
    if (!['status', 'explain'].includes(args[1] ?? '')) assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    if (args[1] === 'bundle' && args[0] === 'node') learnBundle(world, String(args[2]), stdout)
  })
  learnOffline(world)
}

const learnBundle = (world: World, node: string, stdout: string): void => {
  const file = world.at('out', node)
  const text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : stdout
  world.ledger.learn('enrollment token', node, secretIn(text))
}

const learnOffline = (world: World): void => {
  world.ledger.learn("administrator's key", 'offline', fs.readFileSync(world.at('offline/admin.key'), 'utf8').trim())
  for (const name of fs.readdirSync(world.at('stick'))) {
    const text = fs.readFileSync(world.at('stick', name), 'utf8')
    if (text.includes('PRIVATE KEY')) world.ledger.learn('root key kept elsewhere', 'stick', text)
  }
}

/** What programs read: every document of the API, and the metrics of plane and agent. */
export const readEverything = async (world: World, agent: Agent): Promise<void> => {
  const { body } = await world.operate('GET', '/openapi.json')
  const paths = Object.entries(body.paths as Record<string, object>).flatMap(([where, verbs]) =>
    'get' in verbs && /^\/(v1|metrics|healthz|readyz)/.test(where) ? [where] : [],
  )
  for (const where of paths) await world.operate('GET', where.replace('{id}', 'env-1').replace('{name}', 'brief'))
  for (const node of ['raw-words', 'raw-recovery', 'bearer-1', 'hw-1']) {
    await world.operate('GET', `/v1/nodes/${node}/explain`)
  }
  const port = /"port":(\d+),"msg":"metrics are served/.exec(agent.stderr())?.[1]
  assert.ok(port, 'the agent shows its metrics')
  for (const where of ['metrics', world.ledger.shapeless('a path of the agent')]) {
    const answer = await fetch(`http://127.0.0.1:${port}/${where}`, { signal: AbortSignal.timeout(10_000) })
    world.evidence.keep('metrics of an agent', await answer.text())
  }
  world.evidence.keep('journal', JSON.stringify(await journalEntries(world.plane())))
}

/** Ends the agents and the plane with SIGTERM. */
export const endAll = async (world: World, agents: readonly Agent[]): Promise<void> => {
  await world.operate('POST', '/v1/ca/rotate', {})
  world.look()
  await within('every agent to stop', 60_000, Promise.all(agents.map((agent) => agent.stop())))
  await world.plane().stop()
}
