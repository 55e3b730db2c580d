// A hostname that vanished does not take the node with it: the plane is found where it was last, and has to prove itself
// there under the same name.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test, type TestContext } from 'node:test'
import type { Connected, PlaneTarget } from '#agent/link/connect-at.ts'
import { connectPlane } from '#agent/link/connect-plane.ts'
import { addressesFile, openKnownAddresses } from '#agent/link/known-addresses.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { systemClock } from '#platform/clock.ts'
import { openResolver, type Resolve } from '#platform/resolve-name.ts'
import { systemTimers } from '#platform/timers.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import { startDatedPlane, timesAt, type DatedPlane } from '../fakes/dated-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { host } from '../vectors/pki-hierarchy.ts'

const never = new AbortController().signal
const now = timesAt(systemClock.nowMs())

/** Names lead where `leads` says; nowhere at all is an error, as with the system. */
const names = (leads: { addresses: readonly string[]; code?: string }): Resolve => {
  return (name) =>
    leads.addresses.length > 0 && name === host
      ? Promise.resolve(leads.addresses)
      : Promise.reject(Object.assign(new Error(`no ${name}`), { code: leads.code ?? 'ENOTFOUND' }))
}

const start = async (t: TestContext, folder = tempFolder(t)) => {
  const plane = await startDatedPlane(t, now)
  const leads: { addresses: readonly string[]; code?: string } = { addresses: ['127.0.0.1'] }
  const agent = connectingAgent(t, names(leads), folder)
  const connect = async (): Promise<Connected | PlaneFailure> => {
    const outcome = await connectPlane(agent, targetOf(plane), never)
    if (outcome.kind === 'connected') outcome.socket.destroy()
    return outcome
  }
  return { plane, leads, agent, connect, folder }
}

const targetOf = (plane: DatedPlane): PlaneTarget => ({
  url: new URL(`https://${host}:${plane.port}/v1/nodes/gpu-001/confirm`),
  trust: now.trust,
  plane: { domain: 'example.test', marked: false },
  client: now.client,
})

for (const code of ['ENOTFOUND', 'EAI_AGAIN']) {
  test(`a name that leads nowhere (${code}) is healed by its last good address, and called drift`, async (t) => {
    const { leads, agent, connect } = await start(t)
    assert.equal((await connect()).kind, 'connected')
    assert.equal(agent.troubles.has('endpoints'), false)
    Object.assign(leads, { addresses: [], code })
    const healed = await connect()
    assert.equal(healed.kind === 'connected' && healed.address, '127.0.0.1')
    assert.equal(agent.troubles.get('endpoints')?.class, 'endpoint_profile_drift')
    assert.deepEqual(agent.troubles.get('endpoints')?.evidence, { name: host, code, address: '127.0.0.1' })
  })
}

test('drift is counted once while it lasts, is over when the name is back, and is counted again', async (t) => {
  const { leads, agent, connect } = await start(t)
  await connect()
  leads.addresses = []
  await connect()
  await connect()
  assert.equal(agent.record.now().figures.driftTotal, 1)
  leads.addresses = ['127.0.0.1']
  await connect()
  assert.equal(agent.troubles.has('endpoints'), false)
  leads.addresses = []
  await connect()
  assert.equal(agent.record.now().figures.driftTotal, 2)
})

test('a name that leads to an unreachable address is healed too', async (t) => {
  const { leads, agent, connect } = await start(t)
  await connect()
  leads.addresses = ['127.0.0.2', '::1']
  const healed = await connect()
  assert.equal(healed.kind === 'connected' && healed.address, '127.0.0.1')
  assert.equal(agent.troubles.get('endpoints')?.evidence?.['code'], 'ECONNREFUSED')
})

test('a name that leads to another server is healed by its last good address, and that server gets nothing', async (t) => {
  const { leads, agent, connect, plane } = await start(t)
  await connect()
  const stranger = await startDatedPlane(t, timesAt(now.atMs), { address: '127.0.0.2', port: plane.port })
  leads.addresses = ['127.0.0.2']
  const healed = await connect()
  assert.equal(healed.kind === 'connected' && healed.address, '127.0.0.1')
  assert.equal(agent.troubles.get('endpoints')?.evidence?.['code'], 'SELF_SIGNED_CERT_IN_CHAIN')
  assert.deepEqual(stranger.calls, [])
})

test('a name that leads to another server, and no plane at the last address: the other server is reported', async (t) => {
  const { leads, connect, plane } = await start(t)
  await startDatedPlane(t, timesAt(now.atMs), { address: '127.0.0.2', port: plane.port })
  leads.addresses = ['127.0.0.2']
  const outcome = await connect()
  assert.equal('trouble' in outcome && outcome.trouble.class, 'server_tls_untrusted')
  assert.doesNotMatch('trouble' in outcome ? outcome.trouble.text : '', /Node|--use/)
})

test('of several addresses those that do not answer are passed over, and that is no drift', async (t) => {
  const { leads, agent, connect } = await start(t)
  leads.addresses = ['::1', '127.0.0.2', '127.0.0.1']
  const outcome = await connect()
  assert.equal(outcome.kind === 'connected' && outcome.address, '127.0.0.1')
  assert.equal(agent.troubles.has('endpoints'), false)
})

test('an agent that starts after the name was lost knows the address from before', async (t) => {
  const first = await start(t)
  await first.connect()
  const agent = connectingAgent(t, names({ addresses: [] }), first.folder)
  const outcome = await connectPlane(agent, targetOf(first.plane), never)
  assert.equal(outcome.kind, 'connected')
  if (outcome.kind === 'connected') outcome.socket.destroy()
})

test('a server at the last good address has to prove that it is the plane', async (t) => {
  const { agent, connect, plane, leads } = await start(t)
  await connect()
  leads.addresses = []
  const stranger = await startDatedPlane(t, timesAt(now.atMs))
  const target = { ...targetOf(plane), url: new URL(`https://${host}:${stranger.port}/`) }
  const outcome = await connectPlane(agent, target, never)
  assert.equal(outcome.kind, 'unreachable')
  assert.equal('trouble' in outcome && outcome.trouble.class, 'endpoint_unreachable')
  assert.equal('trouble' in outcome && outcome.trouble.evidence['last_good_tried'], 1)
  assert.deepEqual(stranger.calls, [])
})

test('a name that was never reached is unreachable, and says why', async (t) => {
  const { leads, connect } = await start(t)
  leads.addresses = []
  const outcome = await connect()
  assert.equal('trouble' in outcome && outcome.trouble.class, 'endpoint_unreachable')
  assert.equal('trouble' in outcome && outcome.trouble.evidence['code'], 'ENOTFOUND')
})

test('no more names and addresses are remembered than fit, the latest first', (t) => {
  const folder = tempFolder(t)
  const known = openKnownAddresses(folder)
  for (let i = 0; i < 40; i++) known.worked(`plane-${i}.test`, '192.0.2.1')
  for (let i = 0; i < 9; i++) known.worked('plane-39.test', `192.0.2.${i}`)
  const again = openKnownAddresses(folder)
  assert.deepEqual(again.lastGood('plane-39.test'), ['192.0.2.8', '192.0.2.7', '192.0.2.6', '192.0.2.5'])
  assert.deepEqual(again.lastGood('plane-24.test'), ['192.0.2.1'])
  assert.deepEqual(again.lastGood('plane-23.test'), [])
})

test('a file of addresses that is damaged is as good as none', (t) => {
  const folder = tempFolder(t)
  const one = { name: host, addresses: ['evil.test', '192.0.2.1'] }
  for (const [content, expected] of [
    ['{', []],
    ['{"version":1}', []],
    [JSON.stringify({ version: 1, names: [one] }), ['192.0.2.1']],
  ] as const) {
    fs.writeFileSync(addressesFile(folder), content)
    assert.deepEqual(openKnownAddresses(folder).lastGood(host), expected)
  }
})

test('a folder that cannot be written does not keep an agent from connecting', async (t) => {
  const folder = tempFolder(t)
  fs.mkdirSync(`${addressesFile(folder)}.new/x`, { recursive: true })
  const { connect, leads } = await start(t, folder)
  assert.equal((await connect()).kind, 'connected')
  leads.addresses = []
  assert.equal((await connect()).kind, 'connected')
})

test('the system knows where localhost is, and what is no name at all', async () => {
  const resolve = openResolver(systemTimers)
  const [one, two] = await Promise.all([resolve('localhost', never), resolve('localhost', never)])
  assert.ok(one.includes('127.0.0.1') || one.includes('::1'))
  assert.deepEqual(one, two)
  await assert.rejects(resolve('..', never), (error: Error) => 'code' in error)
})

test('an agent that is being stopped does not wait for a name service that says nothing', async (t) => {
  const { plane } = await start(t)
  const stopping = new AbortController()
  const silent: Resolve = (_name, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
  const connecting = connectPlane(connectingAgent(t, silent), targetOf(plane), stopping.signal)
  stopping.abort()
  assert.deepEqual(await connecting, { kind: 'stopped' })
  await assert.rejects(openResolver(systemTimers)('localhost', stopping.signal), { code: 'ABORT_ERR' })
})
