// While the agent waits before its next attempt, an operator may bring a join string or a repair bundle, or nudge the agent.

import type { AgentParts } from '#agent/core/agent-parts.ts'
import { findJoin } from '#agent/enrollment/join-source.ts'
import { nudgedPause } from '#agent/core/pause.ts'

export type CredentialWatcher = Pick<
  AgentParts,
  'clock' | 'nudge' | 'signal' | 'timers' | 'config' | 'keeper' | 'bundles'
>

export type ArrivedCredential = 'join' | 'bundle' | 'none'

const lookEveryMs = 1_000

export const waitForCredential = async (agent: CredentialWatcher, ms: number): Promise<ArrivedCredential> => {
  const { clock, nudge, signal } = agent
  const untilMs = clock.monotonicMs() + ms
  const nudges = nudge.count()
  const wasInvited = isInvited(agent)
  const formerBundle = bundleId(agent)
  while (!signal.aborted && clock.monotonicMs() < untilMs && nudge.count() === nudges) {
    await nudgedPause(agent, Math.min(lookEveryMs, untilMs - clock.monotonicMs()))
    if (bundleId(agent) !== null && bundleId(agent) !== formerBundle) return 'bundle'
    if (!wasInvited && isInvited(agent)) return 'join'
  }
  return 'none'
}

/** By a token that was not used yet, or by its hardware. */
export const isInvited = ({ config, keeper }: Pick<AgentParts, 'config' | 'keeper'>): boolean =>
  findJoin(config, keeper.credentials().identity).kind === 'join'

const bundleId = ({ bundles, keeper }: Pick<AgentParts, 'bundles' | 'keeper'>): string | null =>
  bundles.find(keeper.credentials().identity)?.issued.id ?? null
