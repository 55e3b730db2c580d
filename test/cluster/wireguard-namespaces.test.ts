// Five machines in network namespaces, real agents, and real WireGuard by wireguard-go.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { withPeer } from '../peers/peer.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { openNetworks, type Machine } from '../process/network-namespaces.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const long = process.env['MUSTER_LONG'] === '1'

type Member = { readonly id: string; readonly machine: Machine; agent: Agent }
type Joined = Member & { readonly key: string; readonly address: string }

const member = async (
  t: Scope,
  plane: Plane,
  id: string,
  machine: Machine,
  state = path.join(tempFolder(t), 'state'),
): Promise<Member> => {
  const args = ['--wireguard', machine.wireguard, '--wireguard-endpoint', machine.address]
  const { status, body } = await plane.api('POST', '/v1/tokens', { node: id, profile: 'mesh' })
  assert.equal(status, 201, JSON.stringify(body))
  return { id, machine, agent: startAgent(t, { join: String(body.join), args, state, wrapper: machine.wrapper }) }
}

/** Its machine was made from an image with the key of another in it: that costs a token, and the next comes with its own key. */
const afterCopiedKey = async (t: Scope, plane: Plane, machine: Machine, other: Member): Promise<Member> => {
  const state = path.join(tempFolder(t), 'state')
  fs.mkdirSync(state, { mode: 0o700 })
  fs.copyFileSync(path.join(other.agent.state, 'wireguard.key'), path.join(state, 'wireguard.key'))
  const { agent } = await member(t, plane, 'mesh-6', machine, state)
  const { code } = await within('the copy to be refused', 20_000, agent.ended)
  assert.equal(code, agentExitCodes.refused)
  assert.match(agent.stderr(), /WG_KEY_IN_USE/)
  return member(t, plane, 'mesh-6', machine, state)
}

const networkOf = ({ agent }: Member): StatusFile['wireguard'] => {
  const file = path.join(agent.state, 'status.json')
  return fs.existsSync(file) ? (JSON.parse(fs.readFileSync(file, 'utf8')) as StatusFile).wireguard : undefined
}

/** In the network, with an address. */
const joined = async (it: Member): Promise<Joined> => {
  const address = await eventually(`${it.id} to have an address`, () => networkOf(it)?.address ?? null, {
    withinMs: 30_000,
    everyMs: 100,
  }).catch((error: unknown) => {
    throw new Error(`${it.id}: ${it.agent.stderr().slice(-2000)}`, { cause: error })
  })
  const { stdout } = await it.machine.run('wg', 'show', it.machine.wireguard, 'public-key')
  return { ...it, address, key: stdout.trim() }
}

const peersOf = async ({ machine }: Member): Promise<string[]> => {
  const { code, stdout } = await machine.run('wg', 'show', machine.wireguard, 'peers')
  assert.equal(code, 0)
  return stdout.split('\n').filter(Boolean).sort()
}

/** Exactly these, as WireGuard itself has it. */
const hasPeers = (it: Joined, all: readonly Joined[], withinMs = 10_000): Promise<true> => {
  const keys = all.filter(({ id }) => id !== it.id).map(({ key }) => key)
  return eventually(
    `${it.id} to have ${keys.length} peers`,
    async () => JSON.stringify(await peersOf(it)) === JSON.stringify(keys.sort()) || null,
    { withinMs },
  )
}

const ping = async (from: Joined, to: Joined): Promise<boolean> =>
  (await from.machine.run('ping', '-6', '-c', '1', '-W', '1', to.address)).code === 0

const reaches = (from: Joined, to: Joined): Promise<true> =>
  eventually(`${from.id} to reach ${to.id}`, async () => (await ping(from, to)) || null)

/** Each node with the next one; all with all in the long run. */
const pairs = (all: readonly Joined[]): [Joined, Joined][] =>
  all.flatMap((from, at) =>
    all
      .filter((to) => to !== from && (long || to === all[(at + 1) % all.length]))
      .map((to): [Joined, Joined] => [from, to]),
  )

test('five machines reach each other over WireGuard until one is revoked; a machine that was cut off removes it first', async (t) => {
  for (const name of ['root', 'ip', 'netns', 'wg', 'wireguard-go', 'ping'] as const)
    if (withPeer(t, name) === null) return
  const networks = openNetworks(t)
  const { hub } = networks
  const plane = await startPlane(t, {
    nodeListen: `${hub.address}:0`,
    recoveryListen: `${hub.address}:0`,
    args: ['--server-name', hub.address],
    wrapper: hub.wrapper,
  })
  const set = { 'wireguard.mode': 'offered' }
  const made = await plane.api('POST', '/v1/profiles', { name: 'mesh', from: 'gpu-cloud', set })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const ids = ['mesh-1', 'mesh-2', 'mesh-3', 'mesh-4', 'mesh-5']
  const members = await Promise.all(ids.map((id) => member(t, plane, id, networks.machine())))
  const all = await Promise.all(members.map(joined))
  const [first, second, third, , fifth] = all as [Joined, Joined, Joined, Joined, Joined]

  await t.test('each of five has the four others, and they answer over the network', async () => {
    await Promise.all(all.map((it) => hasPeers(it, all)))
    await Promise.all(pairs(all).map(([from, to]) => reaches(from, to)))
    // An agent writes its status at most once a second.
    const fourPeers = /WireGuard \S+ \((userspace|kernel)\) is fd[0-9a-f:]+, with 4 peers/
    const stdout = await eventually('its status to name four peers', async () => {
      const status = await fifth.agent.status()
      return fourPeers.test(status.stdout) && status.stdout
    })
    const key = fs.readFileSync(path.join(fifth.agent.state, 'wireguard.key'), 'utf8').trim()
    assert.ok(!stdout.includes(key) && !fifth.agent.stderr().includes(key))
  })

  const left = all.filter(({ id }) => id !== first.id)
  await t.test(
    'a revoked one is gone from the four others within 5 s, though it goes on as if nothing were',
    async (t) => {
      // Its agent sleeps: its own WireGuard keeps every peer, and still nobody answers it.
      first.agent.signal('SIGSTOP')
      const sinceMs = performance.now()
      const revoking = plane.api('POST', `/v1/nodes/${first.id}/revoke`, { reason: 'stolen' })
      await Promise.all(left.map((it) => hasPeers(it, left, 5_000)))
      t.diagnostic(`gone from all four after ${Math.round(performance.now() - sinceMs)} ms`)
      assert.equal((await peersOf(first)).length, 4)
      assert.deepEqual(await Promise.all([ping(second, first), ping(first, second)]), [false, false])
      await reaches(second, third)
      assert.equal((await revoking).status, 200)
      first.agent.signal('SIGCONT')
      const { code } = await within('its agent to end', 20_000, first.agent.ended)
      assert.equal(code, agentExitCodes.revoked)
      assert.notEqual((await first.machine.run('ip', 'link', 'show', 'dev', first.machine.wireguard)).code, 0)
      assert.deepEqual(
        fs.readdirSync(first.agent.state).filter((name) => /wireguard|peers/.test(name)),
        [],
      )
    },
  )

  await t.test(
    'a machine that is cut off and restarted has its previous peers, and removes before it adds',
    async () => {
      fifth.machine.cut()
      await fifth.agent.kill9()
      fifth.agent = fifth.agent.restart()
      const revoking = plane.muster('node', 'revoke', second.id, '--reason', 'stolen', '--no-wait')
      const late = await joined(await afterCopiedKey(t, plane, networks.machine(), fifth))
      assert.equal((await revoking).code, 0)
      const now = [...left.filter(({ id }) => id !== second.id), late]
      await Promise.all(now.filter(({ id }) => id !== fifth.id).map((it) => hasPeers(it, now)))
      await eventually('its network to be up', () => fifth.agent.stderr().includes('wireguard: peers in force'), {
        withinMs: 20_000,
      })
      await hasPeers(fifth, left)

      const before = fifth.agent.stderr().length
      fifth.machine.heal()
      // Ends its wait for the next try.
      fifth.agent.signal('SIGUSR2')
      await hasPeers(fifth, now, 20_000)
      const since = (): string => fifth.agent.stderr().slice(before)
      await eventually('it to be told', () => since().includes('wireguard: peers in force'))
      const steps = [...since().matchAll(/wireguard: (peers removed|peers in force)/g)].map(([, step]) => step)
      assert.equal(steps[0], 'peers removed', since())
      await reaches(fifth, late)
      await reaches(late, fifth)
    },
  )

  await t.test('a quarantined machine is no peer, and has none', async () => {
    const done = await plane.api('POST', `/v1/nodes/${third.id}/quarantine`, { reason: 'odd' })
    assert.equal(done.status, 200, JSON.stringify(done.body))
    await eventually('the others to drop it', async () => !(await peersOf(fifth)).includes(third.key))
    await eventually('it to drop the others', async () => (await peersOf(third)).length === 0)
  })
})
