// A machine whose agent is killed and started again on the same folder, and what the store of a plane has to have of it
// whatever happened: one holder, back by itself, and nothing signed twice.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { AgentStep } from '#agent/core/agent-parts.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { compiledFolder, startChild, testProgram, type Child } from './child.ts'
import type { Scope } from './cleanup.ts'
import { eventually, within } from './eventually.ts'
import { keptCredentials, keptIdentity } from './kept-credentials.ts'
import type { Json } from './operator-call.ts'
import { journalEntries, storedCertificates } from './plane-records.ts'
import { startAgent, type Agent } from './start-agent.ts'
import type { Plane } from './start-plane.ts'
import { tempFolder } from './temp-folder.ts'

export type Recovery = 'key' | 'bearer'

export type Machine = {
  readonly plane: Plane
  readonly id: string
  readonly state: string
  readonly joinFile: string
  readonly recovery: Recovery
  /** The agent as a supervisor starts it. */
  start(): Agent
  /** The same agent, until it has killed itself at the `count`-th time it was there. */
  killedAt(step: AgentStep, count: number): Promise<void>
}

const program = testProgram(path.join(import.meta.dirname, 'failpoint-agent.ts'))
/** On a machine that many tests share an agent may need a while for its start. */
const agentPatience = { withinMs: 120_000, everyMs: 200 } as const

type Asked = { readonly id: string; readonly profile: string; readonly recovery: Recovery }

export const newMachine = async (t: Scope, plane: Plane, asked: Asked): Promise<Machine> => {
  const machine = machineOf(t, plane, asked, 'ORIGINAL')
  await invite(machine, { profile: asked.profile })
  return machine
}

/** Another machine that has everything this one has in its folder now, and nothing of its hardware. */
export const copyOf = (t: Scope, machine: Machine): Machine => {
  const copy = machineOf(t, machine.plane, machine, 'COPY')
  fs.mkdirSync(copy.state, { mode: 0o700 })
  // What the status names is a process of the machine it was written on, and that is this very one.
  for (const name of ['identity.json', 'config.json', 'addresses.json', 'record', 'reserve']) {
    const file = path.join(machine.state, name)
    if (fs.existsSync(file)) fs.copyFileSync(file, path.join(copy.state, name))
  }
  return copy
}

/** The same machine, installed anew. */
export const reinstalled = (t: Scope, machine: Machine): Machine => machineOf(t, machine.plane, machine, 'ORIGINAL')

/** An operator makes a token, and brings it to the machine. */
export const invite = async ({ plane, id, joinFile }: Machine, asked: object = {}): Promise<void> => {
  const { status, body } = await plane.api('POST', '/v1/tokens', { node: id, ...asked })
  assert.equal(status, 201, JSON.stringify(body))
  fs.writeFileSync(joinFile, body.join, { mode: 0o600 })
}

const machineOf = (
  t: Scope,
  plane: Plane,
  { id, recovery }: { readonly id: string; readonly recovery: Recovery },
  serial: string,
): Machine => {
  const folder = tempFolder(t)
  const state = path.join(folder, 'state')
  const joinFile = path.join(folder, 'join')
  const hardware = path.join(folder, 'hardware.json')
  fs.writeFileSync(hardware, JSON.stringify({ macs: [], bmc_serial: serial }))
  // Hundreds of starts, of which each costs half as much when what was compiled is kept.
  const compiled = compiledFolder(() => path.join(path.dirname(plane.data), 'compiled'))
  const env = { MUSTER_HARDWARE_FILE: hardware, NODE_COMPILE_CACHE: compiled }
  return {
    ...{ plane, id, state, joinFile, recovery },
    start: () => startAgent(t, { state, args: ['--join-file', joinFile, '--recovery', recovery], env }),
    async killedAt(step, count) {
      const args = ['--disable-warning=ExperimentalWarning', program, step, String(count), state, joinFile, recovery]
      const agent = startChild(t, process.execPath, args, { env })
      const over = new AbortController()
      void nudgedUntil(over.signal, { state }, agent)
      const killed = within(`${id} to come to "${step}"`, agentPatience.withinMs, agent.ended)
      const { signal } = await withAgentOutput(agent, killed).finally(() => over.abort())
      assert.equal(signal, 'SIGKILL', `${id} never came to "${step}":\n${agent.stdout()}${agent.stderr()}`)
    },
  }
}

/** Renews now and not when it is due, again and again, as `muster agent renew --now` asks for it. */
export const nudgedUntil = async (
  over: AbortSignal,
  { state }: Pick<Machine, 'state'>,
  agent: Child,
  when: 'connected' | 'always' = 'connected',
): Promise<void> => {
  while (!over.aborted && agent.running()) {
    const status = readStatusFile(state)
    // One that does not listen yet would be ended by it.
    const listens = status?.pid === agent.pid && status.nudges === true
    if (listens && (when === 'always' || status.channel.open)) agent.signal('SIGUSR2')
    await new Promise((resolve) => setTimeout(resolve, nudgeEveryMs))
  }
}

const nudgeEveryMs = 500

/** A failure says what the agent had to say. */
const withAgentOutput = <T>(agent: Child, outcome: Promise<T>): Promise<T> =>
  outcome.catch((error: unknown) => {
    throw new Error(agent.stdout().slice(-8_000) + agent.stderr(), { cause: error })
  })

export const nodeOf = async ({ plane, id }: Machine): Promise<Json> => (await plane.api('GET', `/v1/nodes/${id}`)).body

/** Active, with one channel, opened with what is in the folder: the serial of that. */
export const untilBack = (machine: Machine, agent: Agent): Promise<string> =>
  withAgentOutput(
    agent,
    eventually(
      `${machine.id} to be back by itself`,
      async () => {
        const { membership, sessions } = await nodeOf(machine)
        if (membership !== 'active' || sessions.length !== 1) return null
        const serial = keptCredentials(machine.state)?.identity?.current.serial
        return sessions[0].serial === serial ? serial : null
      },
      agentPatience,
    ),
  )

/** It goes on as before: the certificate it came back with has a successor, and that one is in use. */
export const untilRenewed = async (machine: Machine, agent: Agent, serial: string): Promise<void> => {
  const over = new AbortController()
  void nudgedUntil(over.signal, machine, agent)
  const renewed = eventually(
    `${machine.id} to renew`,
    async () => {
      const { sessions, certificates } = await nodeOf(machine)
      const current = certificates.find(({ slot }: Json) => slot === 'current')?.serial
      return current !== serial && sessions.some((session: Json) => session.serial === current)
    },
    agentPatience,
  )
  await withAgentOutput(agent, renewed).finally(() => over.abort())
}

export const untilExpired = async ({ id, state }: Machine): Promise<void> => {
  const { notAfterMs } = keptIdentity(state).current
  await eventually(`the certificate of ${id} to be over`, () => Date.now() > notAfterMs, agentPatience)
}

/**
 * Of a machine whose agent runs: nothing is wrong with it, nobody was taken for a copy, and no request was signed twice.
 * What was issued, oldest first.
 */
export const checkStored = async (machine: Machine): Promise<readonly CertificateRow[]> => {
  const { plane, id, joinFile } = machine
  let last: Json = null
  const isWell = async (): Promise<boolean> => {
    last = await nodeOf(machine)
    return last.membership === 'active' && last.conditions.length === 0
  }
  await eventually(`${id} to be well`, isWell, { withinMs: 60_000, everyMs: 200 }).catch((error: unknown) => {
    throw new Error(JSON.stringify([last.membership, last.conditions]), { cause: error })
  })
  // Its agent goes on: what is written down later than this is not looked at.
  const certificates = await storedCertificates(plane, id)
  const entries = await journalEntries(plane, { node: id })
  const unwanted = entries.filter(({ type }) => ['node.second_holder', 'node.quarantined'].includes(type))
  assert.deepEqual(unwanted, [], id)

  const issuing = entries.filter(({ type }) => ['host.enrolled', 'node.renewed', 'node.recovered'].includes(type))
  for (const { serial } of certificates) {
    const told = issuing.filter((entry) => entry.serial === serial)
    assert.equal(told.length, 1, `${id}: a certificate is in the journal ${told.length} times`)
  }
  const orders = issuing.map(({ body }) => body.order)
  assert.equal(new Set(orders).size, orders.length, `${id}: an order was signed twice`)
  const signed = new Map<string, CertificateRow>()
  for (const certificate of certificates) {
    const before = signed.get(certificate.spki)
    // What comes too late to be answered with what there is gets another: there is never more than one that is good.
    const isAnew = before === undefined || certificate.issuedAtMs >= before.notAfterMs
    assert.ok(isAnew, `${id}: a request was signed twice`)
    signed.set(certificate.spki, certificate)
  }
  assert.equal(fs.existsSync(joinFile), false, `${id}: the used join string is still there`)
  return certificates
}
