// The agent dies without a word, at every step at which that could leave something half done, again and again. On restart key
// and certificate match, nothing has been signed twice, and it is back without an operator.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { agentSteps, type AgentStep } from '#agent/core/agent-parts.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { reserveBytes } from '#agent/state/storage.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { eventually } from '../process/eventually.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import {
  checkStored,
  newMachine,
  untilBack,
  untilExpired,
  untilRenewed,
  type Machine,
  type Recovery,
} from '../process/mortal-machine.ts'
import { shared } from '../process/shared-plane.ts'
import type { Agent } from '../process/start-agent.ts'
import { withSeed } from '../process/with-seed.ts'
import {
  lifetimesMs,
  planeOfBriefLives,
  recoveries,
  recoveryOf,
  restarted,
  rounds,
  reportReturnTimes,
} from './agent-deaths.ts'

const lanes = 6

type Kill = { readonly step: AgentStep; readonly count: number }
type Life = { readonly id: string; readonly recovery: Recovery; readonly kills: readonly Kill[] }

const stepsOf = (what: string): readonly AgentStep[] => agentSteps.filter((step) => step.startsWith(`${what}: `))

/** Each life begins with a killed enrollment; the other steps of the round are dealt out to its lives. */
const livesOfRound = (round: number): readonly Life[] => {
  // Now and then the second time it gets there: what it has kept differs from what it started with.
  const count = round % 2 === 1 ? 2 : 1
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
      issued += (await checkStored(machine)).length
      await agent?.stop()
    })
    reportReturnTimes(
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
          const { pid } = agent
          const isUp = (): boolean => readStatusFile(machine.state)?.pid === pid
          await eventually(`${id} to be up`, isUp, { withinMs: 120_000 })
          await later(random.unit() * lifetimesMs[profile])
          await agent.kill9()
          assert.ok(keptIdentity(machine.state))
          agent = machine.start()
        }
        const startedMs = performance.now()
        const serial = await untilBack(machine, agent)
        backMs.push(performance.now() - startedMs)
        await untilRenewed(machine, agent, serial)
        issued += (await checkStored(machine)).length
        await agent.stop()
      })
      reportReturnTimes(
        t,
        `${lives.length * rounds} kills at random, ${issued} certificates, no request signed twice`,
        backMs,
      )
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
      await checkStored(machine)
      await agent.stop()
    })
  })
})

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const besideIdentity = ['record', 'status.json', 'reserve', 'config.json', 'addresses.json', 'marked.json'] as const

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
