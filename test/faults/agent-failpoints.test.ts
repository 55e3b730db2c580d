// The agent dies without a word, at every step at which that could leave something half done, again and again. On restart key
// and certificate match, nothing has been signed twice, and it is back without an operator.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { agentSteps, type AgentStep } from '#agent/agent-deps.ts'
import { reserveBytes } from '#agent/storage.ts'
import { inParallel } from '#cli/in-parallel.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { certificateBytes, startFaultProxy, type FaultProxy } from '../process/fault-proxy.ts'
import { keptCredentials, keptIdentity, keyHash } from '../process/kept-credentials.ts'
import {
  checkOnRecord,
  newMachine,
  nodeOf,
  nudgedUntil,
  untilBack,
  untilExpired,
  untilRenewed,
  type Machine,
  type Recovery,
} from '../process/mortal-machine.ts'
import { journalEntries } from '../process/plane-records.ts'
import { shared } from '../process/shared-plane.ts'
import type { Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { withSeed } from '../process/with-seed.ts'

const long = process.env['MUSTER_LONG'] === '1'
const rounds = long ? 50 : 3
const lanes = 6
const recoveries = ['key', 'bearer'] as const
const recoveryOf = (place: number): Recovery => recoveries[place % recoveries.length] ?? 'key'

const lifetimesMs = {
  // Long enough for a restart on a machine that is busy with the restarts of all the others.
  brief: 15_000,
  // An agent that is killed at any moment has to hurry with these.
  'of-6s': 6_000,
  'of-10s': 10_000,
}

const planeOfBriefLives = async (scope: Scope, ...args: string[]): Promise<Plane> => {
  const plane = await startPlane(scope, { args })
  for (const [name, lifetimeMs] of Object.entries(lifetimesMs)) {
    const set = { 'certificate.lifetimeMs': lifetimeMs, 'recovery.limit': 1000, 'recovery.windowMs': 1000 }
    const { status, body } = await plane.api('POST', '/v1/profiles', { name, from: 'gpu-cloud', set })
    assert.equal(status, 201, JSON.stringify(body))
  }
  return plane
}

type Restarted = { readonly agent: Agent; readonly backMs: number }

/** After a kill: nothing but a restart is done, and it works and renews. */
const restarted = async (machine: Machine, killedAt: string): Promise<Restarted> => {
  const request = keptCredentials(machine.state)?.request ?? null
  const startedMs = performance.now()
  const agent = machine.start()
  const serial = await untilBack(machine, agent)
  const backMs = performance.now() - startedMs
  await untilRenewed(machine, agent, serial)
  if (request !== null) await checkAnswered(machine, keyHash(request.keyPem), killedAt)
  return { agent, backMs }
}

/** The request that was under way got its certificate, and that one is used. That it is one: checkOnRecord. */
const checkAnswered = async (machine: Machine, key: string, killedAt: string): Promise<void> => {
  const { plane, id } = machine
  const entries = await journalEntries(plane, { node: id })
  const issued = entries.filter(({ body }) => body.key === `SHA256:${key}`)
  // What was not sent may have been of no use any more when it could be.
  if (issued.length === 0 && !killedAt.endsWith('answered')) return
  assert.ok(issued.length > 0, `${id}, killed at "${killedAt}": its request was never signed`)
  const serials = issued.map(({ serial }) => serial)
  const used = entries.some(({ serial, type }) => serials.includes(serial) && type.endsWith('confirmed'))
  // Should it have come back too late to use what it had, it has recovered instead.
  const recovered = entries.some(({ type, epoch }) => type === 'node.recovered' && epoch > issued[0].epoch)
  assert.ok(used || recovered, `${id}, killed at "${killedAt}": what was signed for it is not used`)
}

const tell = (t: TestContext, what: string, backMs: readonly number[]): void => {
  const sorted = [...backMs].sort((a, b) => a - b)
  const at = (share: number): string => ((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) / 1000).toFixed(1)
  t.diagnostic(`${what}; back after ${at(0.5)} s (median), ${at(1)} s (longest)`)
}

type Kill = { readonly step: AgentStep; readonly count: number }
type Life = { readonly id: string; readonly recovery: Recovery; readonly kills: readonly Kill[] }

const stepsOf = (what: string): readonly AgentStep[] => agentSteps.filter((step) => step.startsWith(`${what}: `))

/** Each life begins with a killed enrollment; the other steps of the round are dealt out to its lives. */
const livesOfRound = (round: number): readonly Life[] => {
  // Now and then the second time it gets there: what it has kept differs from what it started with.
  const count = round % 3 === 2 ? 2 : 1
  const later = [...stepsOf('renew'), ...stepsOf('swap'), ...stepsOf('recover')]
  return stepsOf('enroll').map((first, at, enrolling) => ({
    id: `step-${round}-${at}`,
    recovery: recoveryOf(round + at),
    kills: [
      { step: first, count: 1 },
      ...later
        .filter((_, place) => place % enrolling.length === at)
        .map((step) => ({ step, count: step.startsWith('recover') ? 1 : count })),
    ],
  }))
}

test('every step an agent can be killed at is tried', () => {
  const tried = new Set(livesOfRound(0).flatMap(({ kills }) => kills.map(({ step }) => step)))
  assert.deepEqual([...tried].sort(), [...agentSteps].sort())
})

describe('an agent that is killed', { concurrency: true }, () => {
  const plane = shared((scope) => planeOfBriefLives(scope))

  test(`at every step, ${rounds} times each: what it kept fits together, and it is back without an operator`, async (t) => {
    const lives = Array.from({ length: rounds }, (_, round) => livesOfRound(round)).flat()
    const backMs: number[] = []
    let issued = 0
    await inParallel(lives, lanes, async ({ id, recovery, kills }) => {
      const machine = await newMachine(t, plane(), { id, profile: 'brief', recovery })
      let agent: Agent | null = null
      for (const { step, count } of kills) {
        await agent?.stop()
        if (step.startsWith('recover')) await untilExpired(machine)
        await machine.killedAt(step, count)
        const again = await restarted(machine, step)
        backMs.push(again.backMs)
        agent = again.agent
      }
      issued += (await checkOnRecord(machine)).length
      await agent?.stop()
    })
    tell(
      t,
      `${backMs.length} kills at ${agentSteps.length} steps, ${issued} certificates, no request signed twice`,
      backMs,
    )
  })

  test(`at any moment, with certificates of 6 and 10 s, ${rounds} times each: the same`, (t) =>
    withSeed(async (random) => {
      const lives = (['of-6s', 'of-10s'] as const).flatMap((profile) =>
        recoveries.map((recovery) => ({ profile, recovery, id: `any-${profile}-${recovery}` })),
      )
      const backMs: number[] = []
      let issued = 0
      await inParallel(lives, lives.length, async ({ profile, recovery, id }) => {
        const machine = await newMachine(t, plane(), { id, profile, recovery })
        let agent = machine.start()
        await untilBack(machine, agent)
        for (let kill = 0; kill < rounds; kill++) {
          await later(random.unit() * lifetimesMs[profile])
          await agent.kill9()
          assert.ok(keptIdentity(machine.state))
          agent = machine.start()
        }
        const startedMs = performance.now()
        const serial = await untilBack(machine, agent)
        backMs.push(performance.now() - startedMs)
        await untilRenewed(machine, agent, serial)
        issued += (await checkOnRecord(machine)).length
        await agent.stop()
      })
      tell(t, `${lives.length * rounds} kills at random, ${issued} certificates, no request signed twice`, backMs)
    }))

  test('and whose power is cut: what is torn, empty or gone beside its identity is made anew', async (t) => {
    await inParallel(recoveries, recoveries.length, async (recovery) => {
      const machine = await newMachine(t, plane(), { id: `cut-${recovery}`, profile: 'brief', recovery })
      let agent = machine.start()
      await untilBack(machine, agent)
      for (const [name, damage] of Object.entries(damages)) {
        await agent.kill9()
        damage(machine.state)
        agent = (await restarted(machine, name)).agent
        await checkFolder(machine, name)
      }
      // The same with nothing left but an identity whose certificate is over.
      await agent.kill9()
      await untilExpired(machine)
      onlyIdentity(machine.state)
      agent = (await restarted(machine, 'only an expired identity')).agent
      await checkOnRecord(machine)
      await agent.stop()
    })
  })
})

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const besideIdentity = ['record', 'status.json', 'reserve', 'config.json', 'addresses.json'] as const

const halved = (file: string): Buffer => {
  const content = fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0)
  return content.subarray(0, Math.floor(content.length / 2))
}

const onlyIdentity = (state: string): void => {
  for (const name of fs.readdirSync(state)) if (name !== 'identity.json') fs.rmSync(path.join(state, name))
}

/** As a file system may leave a folder behind whose files are replaced by renaming, and flushed only if they matter. */
const damages: Readonly<Record<string, (state: string) => void>> = {
  'a half-written successor': (state) => {
    for (const name of ['identity.json', 'config.json', 'addresses.json']) {
      const file = path.join(state, name)
      fs.writeFileSync(`${file}.new`, halved(file), { mode: 0o600 })
    }
  },
  'empty files': (state) => besideIdentity.forEach((name) => fs.truncateSync(path.join(state, name), 0)),
  'torn files': (state) =>
    besideIdentity.forEach((name) => fs.writeFileSync(path.join(state, name), halved(path.join(state, name)))),
  'only its identity': onlyIdentity,
}

/** What it was killed over is not left lying about either: there are keys in it. */
const checkFolder = ({ state, id }: Machine, after: string): Promise<true> =>
  eventually(
    `${id}: a whole folder after ${after}`,
    () =>
      besideIdentity.every((name) => fs.existsSync(path.join(state, name))) &&
      fs.statSync(path.join(state, 'reserve')).blocks * 512 >= reserveBytes &&
      !fs.existsSync(path.join(state, 'identity.json.new')),
    { withinMs: 20_000 },
  )

describe('an agent that is killed after the commit of the plane', () => {
  /** The plane tells its nodes the address of the proxies: the same ports on another loopback address. */
  const network = shared(async (scope) => {
    const plane = await planeOfBriefLives(scope, '--server-name', '127.0.0.2', '--server-name', '127.0.0.1')
    const proxyOf = (port: number): Promise<FaultProxy> =>
      startFaultProxy(scope, { host: '127.0.0.1', port }, { host: '127.0.0.2', port })
    const recoveryPort = Number(new URL(plane.recoveryUrl).port)
    return { plane, proxies: [await proxyOf(plane.nodePort), await proxyOf(recoveryPort)] }
  })
  const together = long ? 10 : 3

  type Alive = { readonly machine: Machine; agent: Agent }

  /** Replies with a certificate are lost until the plane has committed for every machine, and each was killed then. */
  const killedUnanswered = async (
    alive: readonly Alive[],
    committed: (machine: Machine) => Promise<boolean>,
    run: (one: Alive) => void,
  ): Promise<void> => {
    const { proxies } = network()
    const before = proxies.reduce((sum, proxy) => sum + proxy.repliesDropped(), 0)
    for (const proxy of proxies) proxy.dropReplies(Infinity, certificateBytes)
    await Promise.all(
      alive.map(async (one) => {
        run(one)
        const { id } = one.machine
        await eventually(`the plane to commit for ${id}`, () => committed(one.machine), { withinMs: 60_000 })
        await one.agent.kill9()
        assert.ok(keptCredentials(one.machine.state)?.request, `${id} has no request to repeat`)
      }),
    )
    const lost = proxies.reduce((sum, proxy) => sum + proxy.repliesDropped(), 0) - before
    assert.ok(lost >= alive.length, `${lost} replies lost`)
    for (const proxy of proxies) proxy.pass()
  }

  test(`and before the reply is read, ${rounds} times each: its request is answered with what was signed`, async (t) => {
    const { plane } = network()
    const backMs: number[] = []
    let issued = 0
    const back = async (one: Alive, killedAt: string): Promise<void> => {
      const again = await restarted(one.machine, killedAt)
      backMs.push(again.backMs)
      one.agent = again.agent
    }
    const all = (alive: readonly Alive[], work: (one: Alive, place: number) => Promise<void>): Promise<unknown> =>
      Promise.all(alive.map(work))
    for (let pass = 0; pass < Math.ceil(rounds / together); pass++) {
      const alive: Alive[] = []
      for (let place = 0; place < together; place++) {
        const id = `lost-${pass}-${place}`
        const machine = await newMachine(t, plane, { id, profile: 'brief', recovery: recoveryOf(pass + place) })
        alive.push({ machine, agent: machine.start() })
      }
      const isEnrolled = async (machine: Machine): Promise<boolean> => (await nodeOf(machine)).membership === 'enrolled'
      await killedUnanswered(alive, isEnrolled, () => {})
      await all(alive, (one) => back(one, 'enroll: answered'))

      const isRenewed = async (machine: Machine): Promise<boolean> => slotIn(await nodeOf(machine), 'pending')
      const over = new AbortController()
      await killedUnanswered(alive, isRenewed, ({ machine, agent }) => void nudgedUntil(over.signal, machine, agent))
      over.abort()
      // Half of them come back too late for what was signed: it is the recovery that has to put up with the lost reply.
      await all(alive, async (one, place) => {
        if (place % 2 === 1) await untilExpired(one.machine)
        await back(one, 'renew: answered')
      })

      const epochs = new Map<string, number>()
      await all(alive, async ({ machine, agent }) => {
        await agent.stop()
        epochs.set(machine.id, (await nodeOf(machine)).epoch)
        await untilExpired(machine)
      })
      const isRecovered = async (machine: Machine): Promise<boolean> =>
        (await nodeOf(machine)).epoch > (epochs.get(machine.id) ?? Infinity)
      await killedUnanswered(alive, isRecovered, (one) => void (one.agent = one.machine.start()))
      await all(alive, async (one) => {
        await back(one, 'recover: answered')
        issued += (await checkOnRecord(one.machine)).length
        await one.agent.stop()
      })
    }
    tell(t, `${backMs.length} kills before the reply, ${issued} certificates, no request signed twice`, backMs)
  })
})

const slotIn = (node: { certificates: { slot: string }[] }, name: string): boolean =>
  node.certificates.some(({ slot }) => slot === name)
