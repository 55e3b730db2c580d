// While the agent lives with an identity, sources it would prefer are asked again now and then: one that was not there at
// the start of the machine may be by now. What they give goes through the keeper, so that a change of source is a rotation.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import { nudgedPause } from '#agent/core/nudged-pause.ts'
import type { IdentitySource } from '#agent/state/credentials.ts'
import { betterThan, type IdentityProvider } from '#agent/state/provider.ts'

const everyMs = 300_000

type BetterDeps = Pick<AgentParts, 'timers' | 'random' | 'log' | 'nudge' | 'signal'>

/** Resolves with the source that has just given an identity; null when stopped before. */
export const betterIdentity = async (
  deps: BetterDeps,
  providers: readonly IdentityProvider[],
  inUse: () => IdentitySource,
): Promise<IdentitySource | null> => {
  while (!deps.signal.aborted) {
    await nudgedPause(deps, everyMs * (1 - deps.random.unit() / 4))
    for (const { source, provide } of betterThan(providers, inUse())) {
      if (deps.signal.aborted) return null
      const provided = await provide('better', deps.signal)
      if (provided.kind === 'identity') return source
      if (provided.kind === 'broken') {
        deps.log.warn({ source, code: provided.trouble.code, next: provided.trouble.next }, provided.trouble.text)
      }
    }
  }
  return null
}
