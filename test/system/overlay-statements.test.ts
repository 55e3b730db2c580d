// What a vCluster makes the helper of a host start, with real processes on all sides: by a statement of the plane alone where the host
// has pinned its keys, and without the plane after a restart.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openHelperClient } from '#agent/helper/client.ts'
import { generateKey, keyId, verifySignature } from '#pki/keys.ts'
import { allFromPem, toPem } from '#pki/pem.ts'
import { systemTimers } from '#platform/timers.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { conditionsOf, nodeOf, succeeded } from '../compliance/ask-plane.ts'
import { serviceNamed, shown, signedCheck, signedService } from '../fakes/signed-overlays.ts'
import { activeNode } from '../process/active-node.ts'
import { untilConnected } from '../process/agent-member.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { linesOf, socketIn, startTaskHost } from '../process/task-host.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openTlsConnection } from '../process/tls-connection.ts'

const setUp = shared(async (scope) => {
  let plane = await startPlane(scope)
  return {
    plane: (): Plane => plane,
    stop: () => plane.kill9(),
    restart: async () => void (plane = await plane.restart()),
  }
})

const listed = (_folder: string, user: string): string => `
[services.beat]
executable = "/bin/sh"
user = "${user}"
arguments = "any"
[checks.steady]
executable = "/bin/sh"
user = "${user}"
arguments = "any"
`
const patience = { withinMs: 60_000 }

/** Each test has a vCluster of its own. */
const applyVCluster = async (plane: Plane, folder: string, name: string, document: object): Promise<void> => {
  const file = path.join(folder, 'vcluster.yaml')
  fs.writeFileSync(file, JSON.stringify({ name, ...document }))
  const { code, stderr } = await plane.muster('vcluster', 'apply', file)
  assert.equal(code, 0, stderr)
}

test('what a vCluster names is started by a statement of the plane, again without the plane, and not any more once the node has left', async (t) => {
  const { plane: planeNow, stop, restart } = setUp()
  const plane = planeNow()
  const host = await startTaskHost(t, plane, 'ov-1', { listed })
  const beats = path.join(host.folder, 'work', 'beats')
  const count = (): number => linesOf(beats).length
  const script = `echo "beat of $$ at $(date +%T.%N)" >> ${beats}; exec sleep 600`
  const beat = serviceNamed('beat', { command: ['/bin/sh', '-c', script] })
  const steady = { name: 'steady', command: ['/bin/sh', '-c', 'echo steady'] }
  const services = [{ name: beat.name, command: beat.command }]
  await applyVCluster(plane, host.folder, 'training', {
    services,
    checks: [{ ...steady, intervalMs: '1s', timeoutMs: '1s' }],
  })
  succeeded(await plane.api('POST', '/v1/nodes/ov-1/assign', { to: 'training' }))
  const runsIt = async (): Promise<boolean> => {
    const { overlay } = await nodeOf(planeNow(), 'ov-1')
    return overlay?.services?.[0]?.state === 'running' && overlay.checks?.[0]?.state === 'passed'
  }
  await eventually('the service to run and the check to pass', runsIt, patience)
  // The plane may hear that its process is there before the shell has come to its first command.
  await eventually('the service to have written its line', () => count() > 0, patience)
  assert.deepEqual([count(), await conditionsOf(plane, 'ov-1')], [1, []])

  const client = openHelperClient(systemTimers, socketIn(host.folder), () => null)
  cleanup(t, () => client.close())
  const request = { name: 'beat', digest: 'a'.repeat(16), arguments: [], environment: {}, working_directory: null }
  const start = (definition = beat) =>
    client.ask('service.start', { ...request, restart: 'never', overlay: shown(definition) })
  const hostile = { ...beat, command: ['/bin/sh', '-c', `echo hostile >> ${beats}`] }
  await assert.rejects(start(hostile), { code: 'STATEMENT_REFUSED', message: /^NOT_IN_STATEMENT: / })
  await assert.rejects(client.ask('service.start', { ...request, restart: 'never' }), {
    code: 'STATEMENT_REFUSED',
    message: /^STATEMENT_MISSING: /,
  })

  // The agent comes back first, and starts nothing itself while it has no helper.
  const agentFirst = async (): Promise<void> => {
    await host.killAgent()
    await eventually('the agent to miss its helper', () => host.agent().says()?.helper?.there === false, patience)
  }
  await Promise.all([stop(), host.killHelper(agentFirst)])
  await eventually('the service to be started without the plane', () => count() === 2, patience)
  assert.ok(linesOf(beats).every((line) => line.startsWith('beat of ')))
  await restart()

  // What the plane says of the service before that is from before the kills.
  await untilConnected([host.agent()])
  await eventually('the plane to see it', runsIt, patience)
  succeeded(await planeNow().api('POST', '/v1/nodes/ov-1/unassign', {}))
  const kept = path.join(host.folder, 'helper', 'tasks', 'overlay-statement')
  await eventually(
    'the helper to have the statement of a node in no vCluster',
    () => parseStatement('overlay', fs.readFileSync(kept, 'utf8').trim())?.value.vcluster === null,
    patience,
  )
  await assert.rejects(start(), { code: 'STATEMENT_REFUSED', message: /^NOT_IN_STATEMENT: .*in no vCluster/ })
  assert.equal(count(), 2, `${linesOf(beats).join('\n')}\n${host.log()}`)
})

test('a helper that refuses the statement makes the service fail with the reason, on the plane and on the machine', async (t) => {
  const plane = setUp().plane()
  const host = await startTaskHost(t, plane, 'ov-2', { listed })
  const keys = path.join(host.folder, 'statement-keys.pem')
  const right = fs.readFileSync(keys, 'utf8')
  fs.writeFileSync(keys, toPem('PUBLIC KEY', generateKey('ed25519').spki))
  const apply = (seconds: string) =>
    applyVCluster(plane, host.folder, 'unsigned', {
      services: [{ name: 'beat', command: ['/bin/sh', '-c', `sleep ${seconds}`] }],
    })
  await apply('600')
  succeeded(await plane.api('POST', '/v1/nodes/ov-2/assign', { to: 'unsigned' }))
  const explained = async (): Promise<string> => (await plane.muster('node', 'explain', 'ov-2')).stdout
  const reason = /service_failed since [\s\S]*STATEMENT_NOT_SIGNED: /
  await eventually('the condition with its reason', async () => reason.test(await explained()), patience)
  await eventually('the machine to say so, and what to do', async () => {
    const { stdout } = await runMuster(['agent', 'explain', '--state', host.agent().state])
    return /service_failed: beat: STATEMENT_NOT_SIGNED/.test(stdout) && /muster agent trust --statements/.test(stdout)
  })
  fs.writeFileSync(keys, right)
  await apply('601')
  await eventually('it to run', async () => (await conditionsOf(plane, 'ov-2')).length === 0, patience)
})

test('the agent runs no service itself once its host wants signed ones, and takes the helper as soon as that lists them', async (t) => {
  const plane = setUp().plane()
  const host = await startTaskHost(t, plane, 'ov-3', { listed })
  const toml = path.join(host.folder, 'agent.toml')
  const whole = fs.readFileSync(toml, 'utf8')
  const [unsigned = ''] = whole.split('[tasks]')
  const beats = path.join(host.folder, 'work', 'beats')
  // Both the agent's user and that of agent.toml write to it.
  fs.writeFileSync(beats, '')
  fs.chmodSync(beats, 0o666)
  const begun = (): readonly string[] => linesOf(beats)
  const capability = async (): Promise<string> => (await nodeOf(plane, 'ov-3')).capabilities?.services
  // As on a host where agent.toml lists no service, and nothing is pinned.
  fs.writeFileSync(toml, unsigned)
  await host.killAgent()
  const command = ['/bin/sh', '-c', `echo $$ >> ${beats}; exec sleep 600`]
  await applyVCluster(plane, host.folder, 'moved', { services: [{ name: 'beat', command }] })
  succeeded(await plane.api('POST', '/v1/nodes/ov-3/assign', { to: 'moved' }))
  await eventually('the service to run without the helper', () => begun().length === 1, patience)
  await eventually('the plane to see who runs it', async () => (await capability()) !== 'helper', patience)

  // The agent believes another answer of its helper after 35 seconds.
  fs.writeFileSync(toml, whole)
  const isWell = async (): Promise<boolean> => (await conditionsOf(plane, 'ov-3')).length === 0
  const isMoved = async (): Promise<boolean> => begun().length === 2 && (await capability()) === 'helper'
  await eventually('the helper to run it', async () => (await isMoved()) && (await isWell()), { withinMs: 180_000 })
  assert.throws(() => process.kill(Number(begun()[0]), 0), { code: 'ESRCH' })

  fs.writeFileSync(toml, whole.split('[services.beat]')[0] ?? '')
  await host.killAgent()
  // Another command, so that the service of before is not kept.
  const other = ['/bin/sh', '-c', `echo $$ >> ${beats}; exec sleep 601`]
  await applyVCluster(plane, host.folder, 'moved', { services: [{ name: 'beat', command: other }] })
  const explained = async (): Promise<string> => (await plane.muster('node', 'explain', 'ov-3')).stdout
  await eventually('the refusal', async () => /lists no service beat/.test(await explained()), patience)
  assert.deepEqual([begun().length, await capability()], [2, 'helper'])
})

test('a node gets the statement of its own overlay, signed by a key of ca bundle --statements, with its nonce', async (t) => {
  const plane = setUp().plane()
  const node = await activeNode(plane, 'asking')
  const bundle = await plane.api('GET', '/v1/ca/bundle')
  const pinned = allFromPem('PUBLIC KEY', (bundle.body['statement_keys'] as string[]).join('')) ?? []
  // As muster agent trust prints them.
  const said = (await plane.muster('ca', 'bundle', '--statements')).stderr
  assert.ok(pinned.length > 0 && said.includes(`key ids: ${pinned.map(keyId).join(', ')}`), said)
  const connection = await openTlsConnection(t, await plane.target(), node.identity())
  const asked = async () => {
    const nonce = 'n'.repeat(22)
    const { status, body } = await connection.call('POST', '/v1/nodes/asking/overlay-statement', { nonce })
    assert.equal(status, 200, JSON.stringify(body))
    const parsed = parseStatement('overlay', String(body['statement']))
    assert.ok(parsed !== null && pinned.some((spki) => verifySignature(spki, parsed.signed, parsed.signature)))
    const { domain, node: id, epoch, issued_ms: issuedMs, ...rest } = parsed.value
    assert.deepEqual([domain, id, epoch, issuedMs > 0, rest.nonce], [plane.domain, 'asking', 1, true, nonce])
    return { vcluster: rest.vcluster, services: rest.services, checks: rest.checks }
  }
  assert.deepEqual(await asked(), { vcluster: null, services: [], checks: [] })
  const service = { name: 'greet', command: ['/bin/echo', '{id}'], environment: { NAME: '{id}' }, template: true }
  const check = { name: 'steady', command: ['/bin/true'] }
  await applyVCluster(plane, tempFolder(t), 'asked', { services: [service], checks: [check] })
  succeeded(await plane.api('POST', '/v1/nodes/asking/assign', { to: 'asked' }))
  const filled = serviceNamed('greet', {
    command: ['/bin/echo', 'asking'],
    terms: {
      ...{ user: null, environment: { NAME: 'asking' }, working_directory: null, restart: 'always' },
      ...{ memory_bytes: null, cpus: null, open_files: null },
    },
  })
  assert.deepEqual(await asked(), {
    vcluster: 'asked',
    services: [signedService(filled)],
    checks: [signedCheck(check)],
  })
  for (const body of [{}, { nonce: 'short' }, { nonce: null }]) {
    const wrong = await connection.call('POST', '/v1/nodes/asking/overlay-statement', body)
    assert.equal(wrong.body['code'], 'REQUEST_INVALID')
  }
})
