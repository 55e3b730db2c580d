import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Peer } from '#domain/network/peer-set.ts'
import { newWireguardKey } from '#pki/wireguard-key.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { peerOnWire, type PlanePeers, type WireguardConfig } from '#wire/network/peers.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { eventually } from '../../../test/process/eventually.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { trouble } from '#agent/core/trouble.ts'
import { peerSet, type PeerSet } from './peer-store.ts'
import { WireguardFault, type WireguardLink } from './wireguard-link.ts'
import { openWireguard, type AppliedPeers, type PeersSender, type WireguardNetwork } from './wireguard-network.ts'

const told: WireguardConfig = { address: 'fd00::1', network: 'fd00::/64', listen_port: 51_820, mtu: 1420 }

const peerNamed = (node: string): Peer => ({
  node,
  publicKey: newWireguardKey().publicKey,
  endpoint: '192.0.2.1:51820',
  allowedIps: ['fd00::9/128'],
})
const [a, b] = [peerNamed('a'), peerNamed('b')]
const setOf = (...peers: readonly Peer[]): PeerSet => peerSet(new Map(peers.map((peer) => [peer.publicKey, peer])))
const whole = (...peers: readonly Peer[]): PlanePeers => ({
  base: null,
  revision: setOf(...peers).revision,
  remove: [],
  add: peers.map(peerOnWire),
  more: false,
})

/** An interface that is nothing but what was done to it. */
const fakeLink = (): WireguardLink & { steps: string[]; broken: boolean; keys: Set<string>; text: string } => {
  const it = {
    steps: [] as string[],
    broken: false,
    keys: new Set<string>(),
    text: '',
    ensure: () => step('ensure', () => ({ kind: 'kernel' as const, made: false })),
    remove: (keys: readonly string[]) => step('remove', () => keys.forEach((key) => it.keys.delete(key))),
    sync: (text: string) =>
      step('sync', () => {
        it.text = text
        it.keys = new Set([...text.matchAll(/^PublicKey = (.*)$/gm)].map(([, key = '']) => key))
      }),
    address: () => step('address', () => {}),
    peers: () => step('peers', () => it.keys),
    takeDown: () => step('down', () => it.keys.clear()),
    leave: () => step('leave', () => {}),
  }
  const step = async <T>(name: string, act: () => T): Promise<T> => {
    await Promise.resolve()
    if (it.broken && name !== 'leave') throw new WireguardFault(trouble('wireguard_failed', 'it is broken', 'mend it'))
    it.steps.push(name)
    return act()
  }
  return it
}

const open = (t: TestContext, folder = tempFolder(t)) => {
  const link = fakeLink()
  const timers = manualTimers(manualClock(0))
  const answers: (AppliedPeers | { have: string | null })[] = []
  const from: PeersSender = {
    have: (revision) => void answers.push({ have: revision }),
    applied: (applied) => void answers.push(applied),
  }
  let status: StatusFile['wireguard']
  const config = { stateFolder: folder, keyStorage: 'file', wireguard: { interface: 'wg0', endpoint: null } } as const
  const network = openWireguard(
    { timers, random: systemRandom, log: silentLog },
    config,
    { facts: (facts) => void (status = facts.wireguard) },
    { credentialWrite: (write) => write() },
    link,
  )
  t.after(() => network.close())
  return { link, timers, answers, from, network, folder, status: () => status }
}

const settled = (network: WireguardNetwork): Promise<string | null> => network.have() ?? Promise.resolve(null)

test('what has gone is taken off the interface before anything is put on it, and the set in force is confirmed', async (t) => {
  const { link, network, answers, from, status } = open(t)
  network.request()
  network.enrolled(told, true)
  network.receive(whole(a), from)
  assert.equal(await settled(network), setOf(a).revision)
  link.steps.length = 0
  network.receive(whole(b), from)
  assert.equal(await settled(network), setOf(b).revision)
  assert.deepEqual(link.steps, ['ensure', 'remove', 'sync'])
  assert.deepEqual([...link.keys], [b.publicKey])
  assert.deepEqual(answers, [
    { revision: setOf(a).revision, applied: true, detail: null },
    { revision: setOf(b).revision, applied: true, detail: null },
  ])
  assert.deepEqual(status(), {
    interface: 'wg0',
    kind: 'kernel',
    address: 'fd00::1',
    peers: 1,
    revision: setOf(b).revision,
    trouble: null,
  })
})

test('after a restart the peers are the previous ones, without a call; a damaged file counts as none', async (t) => {
  const before = open(t)
  before.network.request()
  before.network.enrolled(told, true)
  before.network.receive(whole(a, b), before.from)
  await settled(before.network)
  await before.network.close()

  const again = open(t, before.folder)
  again.network.configured(told)
  assert.equal(await settled(again.network), setOf(a, b).revision)
  assert.equal(again.link.text, before.link.text)
  await again.network.close()

  const file = path.join(before.folder, 'peers.json')
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('fd00::9', 'fd00::8'))
  const damaged = open(t, before.folder)
  damaged.network.configured(told)
  await settled(damaged.network)
  assert.deepEqual([...damaged.link.keys], [])
})

test('a peer that was removed does not come back with a restart, not even when that could not be written down', async (t) => {
  const before = open(t)
  before.network.request()
  before.network.enrolled(told, true)
  before.network.receive(whole(a, b), before.from)
  await settled(before.network)
  // No room, or whatever else keeps the file from being replaced.
  fs.mkdirSync(path.join(before.folder, 'peers.json.new'))
  before.network.receive(whole(a), before.from)
  await settled(before.network)
  assert.deepEqual([...before.link.keys], [a.publicKey])
  await before.network.close()

  const again = open(t, before.folder)
  again.network.configured(told)
  await settled(again.network)
  assert.deepEqual([...again.link.keys], [], 'the plane is asked for all of them')
})

test('a set that could not be applied is reported once, retried, and confirmed when it is applied', async (t) => {
  const { link, network, answers, from, timers, status } = open(t)
  network.request()
  network.enrolled(told, true)
  await settled(network)
  link.broken = true
  network.receive(whole(a), from)
  assert.equal(await settled(network), null, 'nobody is told of a set that is not in force')
  timers.advance(120_000)
  await settled(network)
  assert.deepEqual(answers, [{ revision: setOf(a).revision, applied: false, detail: 'it is broken' }])
  assert.equal(status()?.trouble?.code, 'wireguard_failed')
  link.broken = false
  timers.advance(120_000)
  await eventually('it to be in force', () => answers.length === 2)
  assert.deepEqual(answers[1], { revision: setOf(a).revision, applied: true, detail: null })
})

test('a peer that was added to the interface by hand is removed', async (t) => {
  const { link, network, from, timers } = open(t)
  network.request()
  network.enrolled(told, true)
  network.receive(whole(a), from)
  await settled(network)
  link.keys.add(b.publicKey)
  timers.advance(60_000)
  await eventually('it to be gone', () => !link.keys.has(b.publicKey))
})

test('a quarantined node has no peers; a revoked node keeps neither interface nor peers nor key', async (t) => {
  const { link, network, from, folder } = open(t)
  network.request()
  network.enrolled(told, true)
  network.receive(whole(a, b), from)
  await settled(network)
  network.removePeers()
  await settled(network)
  assert.deepEqual([...link.keys], [])
  assert.equal(link.steps.at(-1), 'sync')
  await network.withdraw()
  assert.equal(link.steps.at(-1), 'down')
  assert.deepEqual(fs.readdirSync(folder), [])
})

test('a key the plane refuses is not asked for again; one in memory never reaches the disk', async (t) => {
  const { network, folder } = open(t)
  const keyOf = (): string | null => {
    const request = network.request()
    return 'kind' in request ? (request.body?.public_key ?? null) : null
  }
  const first = keyOf()
  assert.equal(keyOf(), first)
  assert.equal(fs.statSync(path.join(folder, 'wireguard.key')).mode & 0o777, 0o600)
  network.keyRefused()
  assert.notEqual(keyOf(), first)
  network.enrolled(told, false)
  await settled(network)
  assert.deepEqual(fs.readdirSync(folder), [])
})
