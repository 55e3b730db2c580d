// What an agent and its plane say of a failure while it lasts, and what the journal has of it afterwards (seed 003).

import assert from 'node:assert/strict'
import type { FailureClass } from '#domain/core/node.ts'
import type { RecordedEvent } from '#agent/diagnostics/events.ts'
import { readRecord } from '#agent/diagnostics/record-files.ts'
import { readStatusFile, type Place, type StatusTrouble } from '#agent/diagnostics/status-file.ts'
import { makeProfile, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { runMuster } from '../process/run-muster.ts'
import type { Agent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'
import { journalOf, nodeOf, succeeded } from './ask-plane.ts'

/** Long enough for two busy cores; a failure shows what was said instead. */
const patience = { withinMs: 45_000, everyMs: 50 }

/** The agent in its next process, as the same node. */
export const again = (member: Member, changes: Parameters<Agent['restart']>[0] = {}): Member => {
  const agent = member.restart(changes)
  return { ...agent, id: member.id, says: () => readStatusFile(agent.state) }
}

export const troubleAt = (member: Member, place: Place): StatusTrouble | null =>
  member.says()?.troubles.find((trouble) => trouble.place === place) ?? null

const failWithStatus = (member: Member, error: unknown): never => {
  const said = JSON.stringify(member.says()?.troubles, null, 1)
  throw new Error(`${member.id} says ${said}\n${member.stderr().slice(-3000)}`, { cause: error })
}

/** Until its status names this class at that place. */
export const untilItSays = (member: Member, place: Place, failure: FailureClass): Promise<StatusTrouble> =>
  eventually(
    `${member.id} to say ${failure} at its ${place}`,
    () => {
      const trouble = troubleAt(member, place)
      return trouble?.class === failure ? trouble : null
    },
    patience,
  ).catch((error: unknown) => failWithStatus(member, error))

export const untilItSaysNothingOf = (member: Member, place: Place): Promise<true> =>
  eventually(
    `${member.id} to have no trouble with its ${place}`,
    () => member.says() !== null && troubleAt(member, place) === null,
    patience,
  ).catch((error: unknown) => failWithStatus(member, error))

/** Connected by a certificate of this epoch, as both of them see it. */
export const untilBack = (plane: Plane, member: Member, epoch: number): Promise<Json> =>
  eventually(
    `${member.id} to be active in epoch ${epoch}`,
    async () => {
      const node = await nodeOf(plane, member.id)
      const isBack = node.membership === 'active' && node.channel_open && node.epoch === epoch
      return isBack && member.says()?.channel.open === true ? node : null
    },
    patience,
  ).catch((error: unknown) => failWithStatus(member, error))

export const untilCondition = (plane: Plane, id: string, name: string): Promise<Json> =>
  eventually(
    `the plane to say ${name} of ${id}`,
    async () => (await nodeOf(plane, id)).conditions.find((condition: Json) => condition.name === name),
    patience,
  )

export const untilNoCondition = (plane: Plane, id: string, ...names: readonly string[]): Promise<true> =>
  eventually(
    `the plane to say nothing of ${names.join(' and ')} of ${id}`,
    async () => !(await nodeOf(plane, id)).conditions.some((condition: Json) => names.includes(condition.name)),
    patience,
  )

/** `muster agent explain`, in a process of its own, from the files of the agent alone. */
export const agentExplains = async (
  { state }: Pick<Agent, 'state'>,
  env: Readonly<Record<string, string>> = {},
): Promise<Json> => {
  const { code, stdout, stderr } = await runMuster(['agent', 'explain', '--state', state, '-o', 'json'], { env })
  assert.ok(stdout !== '', `agent explain said nothing (${code}): ${stderr}`)
  return JSON.parse(stdout)
}

/** `muster node explain`, as lines. */
export const planeExplains = async (plane: Plane, id: string): Promise<string> => {
  const { code, stdout, stderr } = await plane.muster('node', 'explain', id)
  assert.equal(code, 0, stderr)
  return stdout
}

export const recordOf = ({ state }: Pick<Agent, 'state'>): readonly RecordedEvent[] => readRecord(state)

export const entriesOf = async (plane: Plane, id: string, ...types: readonly string[]): Promise<readonly Json[]> =>
  (await journalOf(plane, { node: id })).filter(({ type }) => types.includes(type))

/** the failure in the agent's own record, the request, the issuance and the resolution are one story. */
export const recoveryStory = async (plane: Plane, member: Member): Promise<readonly Json[]> => {
  const confirmed = await eventually(
    `the resolution of the recovery of ${member.id}`,
    async () => {
      const recovered = (await entriesOf(plane, member.id, 'node.recovered', 'node.repaired')).at(-1)
      const uses = await entriesOf(plane, member.id, 'node.confirmed')
      return recovered === undefined ? null : uses.find(({ epoch }) => epoch === recovered.epoch)
    },
    patience,
  )
  const { correlation } = confirmed
  const story = (await journalOf(plane, { node: member.id })).filter((entry) => entry.correlation === correlation)
  const types = story.map(({ type }) => type)
  for (const type of ['node.recovery_requested', 'node.recovered', 'node.confirmed']) {
    assert.equal(types.filter((one) => one === type).length, 1, `${type} once in ${types.join(', ')}`)
  }
  const failed = recordOf(member).filter((event) => event.correlation === correlation && event.event === 'failed')
  assert.ok(failed.length > 0, `no failure of the agent's record is part of ${correlation}`)
  return story
}

/** What a node was given since it was enrolled, by what it asked for. */
export const issuedTo = async (plane: Plane, id: string): Promise<{ renewals: number; recoveries: number }> => ({
  renewals: (await entriesOf(plane, id, 'node.renewed')).length,
  recoveries: (await entriesOf(plane, id, 'node.recovered', 'node.repaired')).length,
})

/** How long certificates live that nothing in a test waits for. */
export const longLifeMs = 600_000

export const makeLongLived = (plane: Plane, profile: string): Promise<void> =>
  makeProfile(plane, profile, [`certificate.lifetimeMs=${longLifeMs}`])

/** Of the certificates that are issued from now on. */
export const setLifetime = async (plane: Plane, profile: string, ms: number): Promise<void> => {
  succeeded(await plane.api('PATCH', `/v1/profiles/${profile}`, { set: { 'certificate.lifetimeMs': ms } }))
}

/**
 * From here on by certificates that live so long. Asked for now, and not at the enrollment: what a test sets up before may
 * take a busy machine longer than such a certificate lives.
 */
export const liveFor = async (plane: Plane, profile: string, ms: number, ...members: Member[]): Promise<void> => {
  await setLifetime(plane, profile, ms)
  await Promise.all(members.map(renewNow))
}

/** The plane has seen the newest certificate in use, so that the one before only drains. */
export const untilUsed = (plane: Plane, member: Member): Promise<true> =>
  eventually(
    `${member.id} to have used its newest certificate`,
    async () => {
      const serial = member.says()?.certificate?.serial
      const { certificates } = await nodeOf(plane, member.id)
      return certificates.some((one: Json) => one.slot === 'current' && one.serial === serial)
    },
    patience,
  )

/** As `muster agent renew --now` does. */
export const renewNow = async (member: Member): Promise<void> => {
  const serial = (): string | undefined => member.says()?.certificate?.serial
  const before = serial()
  member.signal('SIGUSR2')
  await eventually(`${member.id} to renew when told to`, () => (serial() ?? before) !== before, patience).catch(
    (error: unknown) => failWithStatus(member, error),
  )
}
