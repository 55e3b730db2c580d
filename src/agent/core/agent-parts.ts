// What an agent is given and what it consists of. Nothing here belongs to the process: hundreds of agents may share one.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import type { Resolve } from '#platform/resolve-name.ts'
import type { Timers } from '#platform/timers.ts'
import type { ConfigKeeper } from '#agent/channel/last-config.ts'
import type { AgentConfig } from './config.ts'
import type { IdentityKeeper } from '#agent/state/identity-keeper.ts'
import type { JudgedClock } from './judged-clock.ts'
import type { KnownAddresses } from '#agent/link/known-addresses.ts'
import type { KnownMarks } from '#agent/link/known-marks.ts'
import type { SightingKeeper } from '#agent/continuity/last-sighting.ts'
import type { ProgramKeeper } from '#agent/programs/program-keeper.ts'
import type { OverlayKeeper } from '#agent/fleet/overlay-keeper.ts'
import type { BearerTurns } from '#agent/recovery/bearer-turns.ts'
import type { Episode } from '#agent/recovery/episode.ts'
import type { RepairBundles } from '#agent/recovery/repair-file.ts'
import type { Outbox } from '#agent/diagnostics/outbox.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import type { RecoveryRotation } from '#agent/state/recovery-rotation.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import type { TaskLink } from '#agent/tasks/task-link.ts'
import type { WireguardNetwork } from '#agent/network/wireguard-network.ts'

/** What the process gives an agent. */
export type AgentHost = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  /** Where a name leads. */
  readonly resolve: Resolve
  /** Called after each step of the agent, in order; tests end the process here. */
  readonly reached: (step: AgentStep) => void
  /** Asked for by `muster agent renew --now` (SIGUSR2). */
  readonly nudge: Nudge
  /** Aborted: the agent closes what it holds and ends with `stopped`. */
  readonly signal: AbortSignal
}

/** What every part of the agent is built on: a function that opens a part takes what it uses of it first. */
export type AgentCore = Pick<AgentHost, 'clock' | 'timers' | 'random' | 'log'>

/** Every place at which a crash could leave something half done. */
export const agentSteps = [
  'enroll: request kept',
  'enroll: answered',
  'enroll: identity kept',
  'renew: request kept',
  'renew: answered',
  'renew: identity kept',
  'recover: request kept',
  'recover: answered',
  'recover: identity kept',
  'swap: passive open',
  'swap: passive healthy',
  'swap: swapped',
  'swap: old one closed',
] as const
export type AgentStep = (typeof agentSteps)[number]

export type Nudge = {
  /** Resolves at the next nudge, or when `signal` is aborted. */
  wait(signal: AbortSignal): Promise<void>
  /** How many there have been. */
  count(): number
}

/** The agent itself. Only main.ts puts it together, and only the root has all of it; other files name what they use. */
export type AgentParts = Omit<AgentHost, 'clock' | 'log'> & {
  /** By what the plane says about the time. */
  readonly clock: JudgedClock
  /** Repeated lines are counted, not written, and fewer are written while the disk is almost full. */
  readonly log: Log
  readonly config: AgentConfig
  readonly addresses: KnownAddresses
  /** Planes that are known to carry their mark. */
  readonly marks: KnownMarks
  /** What an operator has brought to this machine. */
  readonly bundles: RepairBundles
  readonly keeper: IdentityKeeper
  readonly lastConfig: ConfigKeeper
  /** The events of this agent, its status and its counters. */
  readonly record: AgentRecord
  /** The failure of this identity at the plane, from its first refusal on. */
  readonly episode: Episode
  /** The disk under the state folder, and the room kept back on it. */
  readonly storage: AgentStorage
  /** The random id of this process, which a copy does not have (AgentEvidence.instance). */
  readonly instance: string
  /** How far the plane's journal had come. */
  readonly sightings: SightingKeeper
  /** Of this process too: its numbers go on across sessions. */
  readonly outbox: Outbox
  /** This node among its peers. */
  readonly wireguard: WireguardNetwork
  /** The files and services of the node's vCluster. */
  readonly overlay: OverlayKeeper
  /** The leaves of the programs on this node. */
  readonly programs: ProgramKeeper
  /** The tasks of this node. */
  readonly tasks: TaskLink
  /** Whether a task has asked for a new recovery key. */
  readonly rotation: RecoveryRotation
  /** A rehearsal and a renewal do not meet at the plane. */
  readonly bearerTurns: BearerTurns
}

/** The same agent, stopped earlier: such as one that lasts no longer than a session or a single attempt. */
export const withSignal = <A extends Pick<AgentParts, 'signal'>>(agent: A, signal: AbortSignal): A => ({
  ...agent,
  signal,
})
