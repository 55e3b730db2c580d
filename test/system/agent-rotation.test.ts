// A rotation seen from both ends: what goes over the channel while it is exchanged, and what happens when it cannot be.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentStep } from '#agent/core/agent-parts.ts'
import { openNudging } from '#agent/core/pause.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { systemRandom } from '#platform/random.ts'
import { evidenceHeader, parseEvidence } from '#wire/core/agent-evidence.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { refusal, startSmallPlane, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'

/** The numbers a plane says it took, in the order it took them. */
const reportsTaken = ({ stderr }: Pick<Plane, 'stderr'>): number[] =>
  stderr()
    .split('\n')
    .flatMap((line) => /"report":(\d+).*report taken/.exec(line)?.[1] ?? [])
    .map(Number)

const countedUp = (to: number): number[] => Array.from({ length: to }, (_, index) => index + 1)

const read = <T>(folder: string, file: string): T => JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')) as T

type Kept = { identity: { current: { serial: string; proven: boolean }; previous: object | null } | null }

/** An agent in this process, so that the test is told of every step and can act on it in the same turn. */
const agentOf = async (t: TestContext, plane: Plane, reached: (step: AgentStep) => void) => {
  const join = parseJoinString(await plane.token('--node', 'gpu-001')) ?? assert.fail('no join string')
  const nudging = openNudging()
  const config = testAgentConfig(t, join, { reportEveryMs: 50 })
  const agent = runTestAgent(t, config, 0, undefined, { reached, nudge: nudging.nudge })
  const status = (): StatusFile => read(config.stateFolder, 'status.json')
  await eventually('the first reports', () => (status().reports?.acknowledged ?? 0) > 3)
  return { agent, status, renewNow: nudging.fire }
}

test('a stream of reports loses none and repeats none while its channel is exchanged again and again', async (t) => {
  const plane = await startPlane(t, { args: ['--log-level', 'debug'] })
  const steps: AgentStep[] = []
  const { agent, renewNow } = await agentOf(t, plane, (step) => steps.push(step))
  for (let swap = 1; swap <= 3; swap += 1) {
    const before = reportsTaken(plane).length
    renewNow()
    await eventually(`swap ${swap}`, () => steps.filter((step) => step === 'swap: old one closed').length === swap)
    await eventually('reports after it', () => reportsTaken(plane).length > before + 10)
  }
  await agent.stop()
  const taken = reportsTaken(plane)
  assert.deepEqual(taken, countedUp(taken.length))
  const ofSwaps = steps.filter((step) => step.startsWith('swap: '))
  assert.deepEqual(
    ofSwaps,
    [1, 2, 3].flatMap(() => ['swap: passive open', 'swap: passive healthy', 'swap: swapped', 'swap: old one closed']),
  )
})

for (const middle of ['swap: passive open', 'swap: passive healthy', 'swap: swapped'] as const) {
  test(`a plane that is restarted in the middle of an exchange (${middle}) gets every report, each once`, async (t) => {
    const plane = await startPlane(t, { args: ['--log-level', 'debug'] })
    const stopped = Promise.withResolvers<void>()
    let isOver = false
    const { status, renewNow } = await agentOf(t, plane, (step) => {
      if (step !== middle || isOver) return
      isOver = true
      void plane.stop().then(() => stopped.resolve())
    })
    renewNow()
    await stopped.promise
    const next = await plane.restart()
    const before = reportsTaken(plane)
    await eventually('reports to the plane that is back', () => reportsTaken(next).length > 10, { withinMs: 40_000 })
    const taken = [...before, ...reportsTaken(next)]
    assert.deepEqual(taken, countedUp(taken.length))
    await eventually('a channel', () => status().channel.open)
  })
}

/** Takes reports as a plane does: each number once, whichever channel it comes over. */
const takesReports = (small: SmallPlane) => {
  const taken: number[] = []
  const attended = new Set<number>()
  const attend = (index: number): void => {
    attended.add(index)
    const { socket, frames } = small.channels[index] ?? assert.fail(`no channel ${index}`)
    const take = ({ type, body }: { type: string; body: Record<string, unknown> }): void => {
      if (type !== 'report') return
      if (Number(body['number']) > taken.length) taken.push(Number(body['number']))
      small.sendOn(index, 'reported', { instance: body['instance'], number: taken.length })
    }
    frames.forEach(take)
    socket.on('message', (data: Buffer) => take(JSON.parse(data.toString('utf8'))))
  }
  return {
    taken,
    look: () => {
      for (const index of small.channels.keys()) if (!attended.has(index)) attend(index)
    },
  }
}

const reportsOn = (small: SmallPlane, index: number): number =>
  small.channels[index]?.frames.filter(({ type }) => type === 'report').length ?? 0

const smallSetUp = async (t: TestContext, { understands = ['report'], reportEveryMs = 50 } = {}) => {
  const small = await startSmallPlane(t, Date.now())
  small.enrollAnswer = { understands }
  const nudging = openNudging()
  const config = testAgentConfig(t, small.join, { reportEveryMs })
  // Waits of a twentieth of their bound: what is tested is not how long they are.
  const hurried = { ...systemRandom, unit: () => 0.05 }
  const agent = runTestAgent(t, config, 0, hurried, { nudge: nudging.nudge })
  const reports = takesReports(small)
  await eventually('a channel', () => small.channels.length === 1)
  reports.look()
  const identity = () => read<Kept>(config.stateFolder, 'identity.json').identity ?? assert.fail('no identity')
  await eventually('it to be proven', () => identity().current.proven)
  return { small, agent, config, identity, reports, renewNow: nudging.fire }
}

test('while the new channel is refused the old one goes on; when it is taken, everything goes over it', async (t) => {
  const { small, identity, config, reports, renewNow } = await smallSetUp(t)
  const first = identity().current.serial
  small.refuseChannel = refusal(503, 'UNAVAILABLE')
  renewNow()
  const codes = (): string[] => read<StatusFile>(config.stateFolder, 'status.json').troubles.map(({ code }) => code)
  await eventually('the refusal to be told', () => codes().includes('UNAVAILABLE'))
  const before = reportsOn(small, 0)
  await eventually('reports over the old channel', () => reportsOn(small, 0) > before + 5)
  assert.notEqual(identity().current.serial, first)
  assert.equal(identity().current.proven, false, 'a certificate whose channel was refused has not worked')
  assert.notEqual(identity().previous, null)
  small.refuseChannel = null
  await eventually('the new channel', () => small.channels.length === 2)
  reports.look()
  await eventually('reports over the new channel', () => reportsOn(small, 1) > 5)
  const old = small.channels[0]?.socket ?? assert.fail()
  await eventually('the old one to be closed', () => old.readyState === old.CLOSED)
  assert.equal(small.channels[1]?.serial, identity().current.serial)
  assert.equal(identity().previous, null)
  await eventually('the trouble to be over', () => codes().length === 0)
})

test('a new channel that answers no ping is not used: the old one goes on', async (t) => {
  const { small, identity, renewNow } = await smallSetUp(t)
  small.answerPings = false
  renewNow()
  await eventually('the new channel', () => small.channels.length === 2)
  const mute = small.channels[1]?.socket ?? assert.fail()
  await eventually('it to be given up', () => mute.readyState === mute.CLOSED, { withinMs: 15_000 })
  assert.equal(reportsOn(small, 1), 0)
  assert.equal(identity().current.proven, false)
  const before = reportsOn(small, 0)
  await eventually('reports over the old channel', () => reportsOn(small, 0) > before + 5)
})

test('a new certificate that the plane does not know is given up, and the old channel never noticed', async (t) => {
  const { small, identity, renewNow } = await smallSetUp(t)
  const first = identity().current.serial
  small.refuseChannel = refusal(403, 'CLIENT_CERT_UNKNOWN')
  renewNow()
  await eventually('the renewal', () => small.calls.some(({ path: called }) => called.endsWith('/renew')))
  await eventually('the old certificate', () => identity().current.serial === first && identity().previous === null)
  const before = reportsOn(small, 0)
  await eventually('reports over the old channel', () => reportsOn(small, 0) > before + 5)
  assert.equal(small.channels.length, 1)
})

test('a channel that is cut again and again loses no report and repeats none', async (t) => {
  const { small, agent, reports } = await smallSetUp(t)
  for (let cut = 1; cut <= 4; cut += 1) {
    const before = reports.taken.length
    await eventually('reports', () => reports.taken.length > before + 3)
    small.channels.at(-1)?.socket.terminate()
    await eventually('the next channel', () => small.channels.length === cut + 1)
    reports.look()
  }
  await eventually('reports after the last cut', () => reportsOn(small, 4) > 3)
  await agent.stop()
  assert.deepEqual(reports.taken, countedUp(reports.taken.length))
})

test('a change is reported at once, and otherwise a report comes at its own interval', async (t) => {
  const { small, reports, renewNow } = await smallSetUp(t, { reportEveryMs: 3_600_000 })
  await eventually('the first report', () => reports.taken.length === 1)
  renewNow()
  await eventually('the next channel', () => small.channels.length === 2)
  reports.look()
  await eventually('a report of the new certificate', () => reports.taken.length === 2)
  const last = small.channels[1]?.frames.findLast(({ type }) => type === 'report') ?? assert.fail('no report')
  const { serial } = last.body['certificate'] as { serial: string }
  assert.equal(serial, small.channels[1]?.serial)
})

test('a plane that does not understand reports gets none, nor one that has forgotten how', async (t) => {
  const older = await smallSetUp(t, { understands: [] })
  const younger = await smallSetUp(t)
  await eventually('reports', () => younger.reports.taken.length > 3)
  younger.small.sendOn(0, 'unknown_type', { type: 'report' })
  younger.renewNow()
  // The next channel may lead to a plane that knows them.
  await eventually('reports over the next channel', () => reportsOn(younger.small, 1) > 0)
  assert.equal(reportsOn(older.small, 0), 0)
})

test('a plane that understands it gets the process id at the upgrade', async (t) => {
  const silent = await smallSetUp(t)
  const telling = await smallSetUp(t, { understands: ['report', 'evidence'] })
  const evidence = ({ small }: typeof telling) => parseEvidence(String(small.channels[0]?.headers[evidenceHeader]))
  assert.equal(evidence(silent), null)
  const report = await eventually('a report', () =>
    telling.small.channels[0]?.frames.find((one) => one.type === 'report'),
  )
  assert.equal(evidence(telling)?.instance, report.body['instance'])
})
