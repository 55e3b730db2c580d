// Recovery costs an epoch and one of few tries. What looked like a dead identity may be a clock that was wrong, or a network
// that answered for somebody else for a while.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import { askChallenge } from '#agent/link/knock.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import { runtimeDoor } from './way-back.ts'

/** `planeTimeMs`: what the recovery listener has just said; null when it said nothing. */
export const isNeedless = async (agent: AgentParts, why: Trouble, planeTimeMs: number | null): Promise<boolean> => {
  const { identity } = agent.keeper.credentials()
  if (identity === null) return false
  switch (why.class) {
    case 'cert_expired':
    case 'clock_skew': {
      // By the plane's clock and not by ours, which may differ from it as far as is tolerated.
      const timeMs = planeTimeMs ?? (await runtimeTime(agent, identity))
      return timeMs !== null && timeMs < identity.current.notAfterMs
    }
    case 'server_tls_untrusted':
      return (await askChallenge(agent, runtimeDoor(identity), null)).kind === 'challenge'
    default:
      return false
  }
}

const runtimeTime = async (agent: AgentParts, identity: Identity): Promise<number | null> => {
  const asked = await askChallenge(agent, runtimeDoor(identity), null)
  return asked.kind === 'challenge' ? asked.timeMs : null
}
