// What the tests share that kill agents: certificates that are soon over, a restart, and what has to follow from it.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Scope } from '../process/cleanup.ts'
import { keptCredentials, keyHash } from '../process/kept-credentials.ts'
import { untilBack, untilRenewed, type Machine, type Recovery } from '../process/mortal-machine.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'

export const rounds = process.env['MUSTER_LONG'] === '1' ? 50 : 2
export const recoveries = ['key', 'bearer'] as const
export const recoveryOf = (place: number): Recovery => recoveries[place % recoveries.length] ?? 'key'

export const lifetimesMs = {
  // Long enough for a restart on a machine that is busy with the restarts of all the others.
  brief: 15_000,
  // An agent that is killed at any moment has to hurry with these.
  'of-6s': 6_000,
  'of-10s': 10_000,
}

export const planeOfBriefLives = async (scope: Scope, ...args: string[]): Promise<Plane> => {
  const plane = await startPlane(scope, { args })
  for (const [name, lifetimeMs] of Object.entries(lifetimesMs)) {
    const set = { 'certificate.lifetimeMs': lifetimeMs, 'recovery.limit': 1000, 'recovery.windowMs': 1000 }
    const { status, body } = await plane.api('POST', '/v1/profiles', { name, from: 'gpu-cloud', set })
    assert.equal(status, 201, JSON.stringify(body))
  }
  return plane
}

type Request = { readonly keyPem: string }
type Restarted = { readonly agent: Agent; readonly backMs: number }

/** After a kill: nothing but a restart is done, and it works and renews. */
export const restarted = async (machine: Machine, killedAt: string): Promise<Restarted> => {
  const request = keptCredentials(machine.state)?.request ?? null
  const startedMs = performance.now()
  const agent = machine.start()
  const serial = await untilBack(machine, agent)
  const backMs = performance.now() - startedMs
  await untilRenewed(machine, agent, serial)
  if (request !== null) await checkAnswered(machine, request, killedAt)
  return { agent, backMs }
}

const certificatesFor = async ({ plane, id }: Machine, keyPem: string): Promise<readonly Json[]> => {
  const entries = await journalEntries(plane, { node: id })
  return entries.filter(({ body }) => body.key === `SHA256:${keyHash(keyPem)}`)
}

export const isSigned = async (machine: Machine, request: Request | null | undefined): Promise<boolean> =>
  request !== null && request !== undefined && (await certificatesFor(machine, request.keyPem)).length > 0

/** The request that was under way got its certificate, and that one is used. That it is one: checkStored. */
const checkAnswered = async (machine: Machine, { keyPem }: Request, killedAt: string): Promise<void> => {
  const { plane, id } = machine
  const issued = await certificatesFor(machine, keyPem)
  // What was not sent may have been of no use any more when it could be.
  if (issued.length === 0 && !killedAt.endsWith('answered')) return
  assert.ok(issued.length > 0, `${id}, killed at "${killedAt}": its request was never signed`)
  const entries = await journalEntries(plane, { node: id })
  const serials = issued.map(({ serial }) => serial)
  const used = entries.some(({ serial, type }) => serials.includes(serial) && type.endsWith('confirmed'))
  // Should it have come back too late to use what it had, it has recovered instead.
  const recovered = entries.some(({ type, epoch }) => type === 'node.recovered' && epoch > issued[0]?.epoch)
  assert.ok(used || recovered, `${id}, killed at "${killedAt}": what was signed for it is not used`)
}

export const reportReturnTimes = (t: TestContext, what: string, backMs: readonly number[]): void => {
  const sorted = [...backMs].sort((a, b) => a - b)
  const at = (share: number): string => ((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) / 1000).toFixed(1)
  t.diagnostic(`${what}; back after ${at(0.5)} s (median), ${at(1)} s (longest)`)
}
