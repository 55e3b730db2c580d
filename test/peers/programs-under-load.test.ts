// Programs of other people with certificates from Muster on both sides: what a rotation, a plane that is away and a revocation mean
// to their requests.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { joinMember, makeProfile, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime, type FakeTime } from '../process/fake-time.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { openClients, type Clients } from './program-clients.ts'
import { hostFolder, hostName, serverOutputs, servers, startServerHost, type ServerHost } from './program-servers.ts'
import type { ServerName } from './program-servers.ts'
import { isPeersRun } from './run-of-peers.ts'

const minute = 60_000

type Client = { readonly agent: Member; folder(): string; serial(): string | null }

type Stage = {
  plane: Plane
  readonly time: FakeTime
  readonly host: ServerHost
  readonly clients: readonly [Client, Client]
  readonly requests: Clients
  /** Lists the outputs of both sides with another lifetime or key type. */
  list(change: object): Promise<void>
}

const setStage = async (t: TestContext, behindMs: number, change: object): Promise<Stage | null> => {
  const library = withPeer(t, 'faketime')
  const curl = withPeer(t, 'curl')
  const postgres = withPeer(t, 'postgres')
  const etcdctl = withPeer(t, 'etcdctl')
  for (const name of ['nginx', 'etcd', 'unshare', 'root'] as const) if (withPeer(t, name) === null) return null
  if (library === null || curl === null || postgres === null || etcdctl === null) return null
  const shared = hostFolder(t)
  const time = openFakeTime(shared, library, -behindMs)
  const plane = await startPlane(t, { env: time.env })
  const folder = hostFolder(t)
  const list = async (wanted: object): Promise<void> => {
    const outputs = { servers: serverOutputs(folder, wanted), clients: [{ name: 'app', ...wanted }] }
    for (const [profile, listed] of Object.entries(outputs)) {
      const { status, body } = await plane.api('PATCH', `/v1/profiles/${profile}`, { set: { outputs: listed } })
      assert.equal(status, 200, JSON.stringify(body))
    }
  }
  // The least that there can be: what the lists are good for follows from the lifetime of the leaves.
  assert.equal((await plane.muster('domain', 'set', 'programListMs=1h')).code, 0)
  for (const profile of ['servers', 'clients']) await makeProfile(plane, profile, [])
  await list(change)
  const programsRoots = await eventually('the programs root', async () => {
    const { programs } = (await plane.api('GET', '/v1/ca/bundle')).body
    return programs.length > 0 ? programs.join('') : null
  })
  const joinClient = async (id: string): Promise<Client> => {
    const publish = path.join(tempFolder(t), 'outputs')
    const agent = await joinMember(t, plane, { id, profile: 'clients', env: time.env, args: ['--publish', publish] })
    const place = path.join(publish, 'app')
    const serial = () => agent.says()?.outputs?.find(({ name }) => name === 'app')?.serial ?? null
    // Resolved once a request, as the documents say: the next generation may be put in place at any moment.
    return { agent, serial, folder: () => fs.realpathSync(place) }
  }
  const [host, ...clients] = await Promise.all([
    startServerHost(t, folder, { plane, id: 'host-1', programsRoots, clock: time.env }),
    joinClient('client-1'),
    joinClient('client-2'),
  ])
  await untilConnected([host.agent, ...clients.map(({ agent }) => agent)])
  const added = await plane.api('POST', '/v1/nodes/host-1/names/add', { names: [hostName] })
  assert.equal(added.status, 200, JSON.stringify(added.body))
  const hosts = path.join(shared, 'hosts')
  fs.writeFileSync(hosts, `127.0.0.1 ${hostName}\n`)
  const psql = path.join(path.dirname(postgres), 'psql')
  const requests = openClients({ curl, psql, etcdctl, clock: time.env, hosts }, host)
  return { plane, time, host, clients, requests, list }
}

const startServers = async ({ plane, host, clients }: Stage): Promise<void> => {
  await eventually('leaves for all programs', () => {
    const placed = [...servers.map((server) => host.placedSerial(server)), ...clients.map(({ serial }) => serial())]
    return placed.every((serial) => serial !== null)
  })
  // A reload of what does not run fails: the node has a condition, which is over once it can be reloaded.
  const conditions = async () => (await plane.api('GET', '/v1/nodes/host-1')).body.conditions
  await eventually('the condition', async () => {
    assert.match(
      JSON.stringify(await conditions()),
      /"output_failed".*Reload (nginx|postgresql) failed: exit code 1/,
      host.said(),
    )
    return true
  })
  await host.serve()
  await eventually('the end of the condition', async () => (await conditions()).length === 0, { withinMs: 30_000 })
}

type Load = {
  /** Requests that have succeeded, of each server. */
  readonly done: Readonly<Record<ServerName, number>>
  readonly failures: string[]
  /** Resolves when each server has answered so many more. */
  more(requests: number): Promise<void>
  /** Only for these from now on. */
  keepTo(clients: readonly Client[]): void
  stop(): Promise<void>
}

/** One loop a server, one client after the other. The pauses leave the processors to what is tried. */
const openLoad = ({ requests, clients: all, time }: Stage): Load => {
  const done = { nginx: 0, postgres: 0, etcd: 0 }
  const failures: string[] = []
  let clients: readonly Client[] = all
  let isOver = false
  const loops = servers.map(async (server) => {
    for (let at = 0; !isOver; at++) {
      const client = clients[at % clients.length]
      if (client === undefined) break
      const startedMs = performance.now()
      const failed = await requests.ask(server, client.folder())
      if (failed === null) done[server]++
      else failures.push(`${new Date(time.nowMs()).toISOString()} ${server} by ${client.agent.id}: ${failed}`)
      const tookMs = performance.now() - startedMs
      await new Promise((resolve) => setTimeout(resolve, isPeersRun ? tookMs / 4 : 3 * tookMs))
    }
  })
  return {
    done,
    failures,
    async more(requests) {
      const before = { ...done }
      await eventually(`${requests} more requests`, () => servers.every((one) => done[one] >= before[one] + requests), {
        withinMs: 60_000,
      })
    },
    keepTo: (few) => void (clients = few),
    async stop() {
      isOver = true
      await Promise.all(loops)
    },
  }
}

/** Resolves when every leaf of both sides is another one, and every server shows the new one. */
const rotation = async (stage: Stage, cause: () => Promise<unknown>): Promise<void> => {
  const { host, clients } = stage
  const placed = () => [...servers.map((server) => host.placedSerial(server)), ...clients.map(({ serial }) => serial())]
  const before = placed()
  await cause()
  await eventually('other leaves', () => placed().every((serial, at) => serial !== null && serial !== before[at]), {
    withinMs: 60_000,
  })
  for (const server of servers)
    await eventually(`${server} to show its new leaf`, async () => {
      const shown = await host.servedSerial(server)
      return shown === host.placedSerial(server)
    })
}

/** Leaves of less than a minute, by the clock that everybody has by now. */
const renewedInTime = async (stage: Stage): Promise<void> => {
  await stage.list({ lifetimeMs: 40_000, keyType: 'p256' })
  for (let times = 0; times < 3; times++) await rotation(stage, async () => {})
}

/** Milliseconds from the revocation until a request was refused, with none served after it until `isOver`, and what was said. */
const refusal = async (
  sinceMs: number,
  attempt: () => Promise<string | null>,
  isOver: () => boolean = () => true,
): Promise<{ readonly ms: number; readonly said: string }> => {
  let first: { readonly ms: number; readonly said: string } | null = null
  const knocked = async () => {
    const wasOver = isOver()
    const said = await attempt()
    if (said === null) first = null
    else first ??= { ms: Math.round(performance.now() - sinceMs), said }
    return wasOver ? first : null
  }
  return eventually('a refusal', knocked, { withinMs: 30_000, everyMs: 1 })
}

const revoke = async ({ plane }: Stage, id: string): Promise<number> => {
  const sinceMs = performance.now()
  const { status, body } = await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen' })
  assert.equal(status, 200, JSON.stringify(body))
  return sinceMs
}

/** How each says it. nginx answers; etcd closes the connection without a word, and answers nothing (22); psql does not say why. */
const refusedBy = {
  nginx: /\b400\b/,
  postgres: /certificate revoked/,
  etcd: /^(?!22)\d+: curl/,
  'client of nginx': /certificate revoked/,
  'client of postgres': /certificate verify failed/,
} as const

/** From then on no server takes it, and the others go on. */
const cutClient = async (t: TestContext, stage: Stage, load: Load): Promise<void> => {
  const [revoked, other] = stage.clients
  load.keepTo([other])
  // Its agent removes the files; a thief has a copy.
  const stolen = path.join(tempFolder(t), 'stolen')
  fs.cpSync(revoked.folder(), stolen, { recursive: true })
  const { knock } = stage.requests
  for (const server of servers) assert.equal(await knock(server, stolen), null)
  // Those of before the reload accept connections for a moment beside the new ones, which refuse.
  const workers = stage.host.nginxWorkers()
  const areGone = (): boolean => !stage.host.nginxWorkers().some((pid) => workers.includes(pid))
  const sinceMs = await revoke(stage, revoked.agent.id)
  await Promise.all(
    servers.map(async (server) => {
      const isOver = server === 'nginx' ? areGone : undefined
      const { ms, said } = await refusal(sinceMs, () => knock(server, stolen), isOver)
      assert.match(said, refusedBy[server])
      t.diagnostic(`revoked client, until ${server} refused it: ${ms} ms`)
      for (let again = 0; again < 3; again++) assert.match((await knock(server, stolen)) ?? 'served', refusedBy[server])
    }),
  )
  await load.more(3)
}

/** A client that compares lists does not speak to it any more. */
const cutServer = async (t: TestContext, stage: Stage): Promise<void> => {
  const [, client] = stage.clients
  const sinceMs = await revoke(stage, stage.host.agent.id)
  for (const server of ['nginx', 'postgres'] as const) {
    const { ms, said } = await refusal(sinceMs, () => stage.requests.knock(server, client.folder()))
    assert.match(said, refusedBy[`client of ${server}`])
    t.diagnostic(`revoked ${server}, until a client refused it: ${ms} ms`)
  }
}

test('nginx, PostgreSQL and etcd answer every request through three rotations and an outage of the plane, and refuse a revoked client', async (t) => {
  const outageMs = 70 * minute
  const stage = await setStage(t, outageMs, { lifetimeMs: 100 * minute, keyType: 'p256' })
  if (stage === null) return
  const { host, time } = stage
  await startServers(stage)
  for (const server of servers)
    assert.equal(await stage.requests.ask(server, stage.clients[0].folder()), null, host.said())
  const load = openLoad(stage)
  const requests = isPeersRun ? 100 : 3
  await rotation(stage, () => stage.list({ lifetimeMs: 100 * minute, keyType: 'p384' }))
  await load.more(requests)
  await stage.plane.stop()
  time.advance(outageMs)
  await load.more(requests)
  // The leaves became due while the plane was away.
  await rotation(stage, async () => void (stage.plane = await stage.plane.restart()))
  await load.more(requests)
  await rotation(stage, () => stage.list({ lifetimeMs: 100 * minute, keyType: 'p256' }))
  await load.more(requests)
  if (isPeersRun) await renewedInTime(stage)
  await cutClient(t, stage, load)
  await load.stop()
  assert.deepEqual(load.failures, [], host.said())
  t.diagnostic(`requests: ${JSON.stringify(load.done)}`)
  await cutServer(t, stage)
})
