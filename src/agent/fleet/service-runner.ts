// Who runs the services of an overlay (ruling 17): systemd where there is one, else the agent itself.

import type { WantedService } from './wanted-services.ts'

export type ServiceState = 'running' | 'starting' | 'failed'

export type RunningService = {
  readonly name: string
  readonly digest: string
  readonly state: ServiceState
  /** Since it was started as this one. */
  readonly restarts: number
  readonly pid: number | null
}

export type Ensured = 'kept' | 'started'

/** Methods throw when the one who runs them says no. They are called one at a time. */
export type ServiceRunner = {
  readonly kind: 'systemd' | 'supervised'
  /** How often it is worth asking how they are. */
  readonly lookEveryMs: number
  /** All it has, also those of an earlier life of the agent. */
  services(): Promise<readonly RunningService[]>
  /** Afterwards that one runs: left alone when it does already, started in the place of one that differs. */
  ensure(service: WantedService, env: Readonly<Record<string, string>>): Promise<Ensured>
  /** Returns when they have ended; those it does not have are none. */
  stop(names: readonly string[]): Promise<void>
  /** The agent ends. Children end with it; what systemd runs goes on. */
  close(): Promise<void>
}

/** How long a program has to end after SIGTERM. */
export const stopWithinMs = 10_000

/** The number of exits in a row after which a service counts as failed, and the run time that resets the count. */
export const failsAfter = 3
export const settledAfterMs = 10_000
