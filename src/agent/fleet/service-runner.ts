// Who runs the services of an overlay (ruling 17): the helper where there is one, systemd where that lets the agent start units,
// else the agent itself.

import type { WantedService } from './wanted-services.ts'

/** `ended`: it is over, and its restart policy lets it be. */
export type ServiceState = 'running' | 'starting' | 'failed' | 'ended'

export type RunningService = {
  readonly name: string
  readonly digest: string
  readonly state: ServiceState
  /** Since it was started as this one. */
  readonly restarts: number
  readonly pid: number | null
  /** Why it failed, or is being started again; null: nothing is wrong. */
  readonly error: string | null
  /** The last lines it wrote before that, tidied (last-lines.ts). */
  readonly output: readonly string[]
  /** Limits that this runner cannot set. */
  readonly unapplied: readonly string[]
}

export type Ensured = 'kept' | 'started'

/** Methods throw when the one who runs them says no. They are called one at a time. */
export type ServiceRunner = {
  readonly kind: 'helper' | 'systemd' | 'supervised'
  /** How often it is worth asking how they are. */
  readonly lookEveryMs: number
  /** All it has, also those of an earlier life of the agent. */
  services(): Promise<readonly RunningService[]>
  /** Afterwards that one runs: left alone when it does already, started in the place of one that differs. */
  ensure(service: WantedService, env: Readonly<Record<string, string>>): Promise<Ensured>
  /** Returns when they have ended; those it does not have are none. */
  stop(names: readonly string[]): Promise<void>
  /** The agent ends. Children end with it; what systemd or the helper runs goes on. */
  close(): Promise<void>
}

/** How long a program has to end after SIGTERM. */
export const stopWithinMs = 10_000

/** The number of exits in a row after which a service counts as failed, and the run time that resets the count. */
export const failsAfter = 3
export const settledAfterMs = 10_000
