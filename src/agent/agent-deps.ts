// What an agent is given. Nothing here belongs to the process: hundreds of agents may share one.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import type { ConfigKeeper } from './channel/last-config.ts'
import type { AgentConfig } from './config.ts'
import type { IdentityKeeper } from './identity/identity-keeper.ts'
import type { StatusBoard } from './status-board.ts'

export type AgentDeps = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  /** Aborted: the agent closes what it holds and ends with `stopped`. */
  readonly signal: AbortSignal
}

/** The agent itself: what it was given, and what it keeps. */
export type AgentParts = AgentDeps & {
  readonly config: AgentConfig
  readonly keeper: IdentityKeeper
  readonly lastConfig: ConfigKeeper
  readonly board: StatusBoard
}
