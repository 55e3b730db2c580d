// Coming by an identity. The search may last for as long as the plane is away, and a better source may appear meanwhile: then
// the search is over.

import { withSignal, type AgentParts } from '#agent/core/agent-parts.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import { readBootstrapCertificate } from '#agent/link/bootstrap-certificate.ts'
import { nudgedPause } from '#agent/core/pause.ts'
import type { IdentitySource } from '#agent/state/credentials.ts'
import { betterThan, firstIdentity, type Found, type IdentityProvider, type Need } from '#agent/state/provider.ts'

type SearchingAgent = Pick<
  AgentParts,
  'config' | 'keeper' | 'record' | 'log' | 'signal' | 'timers' | 'random' | 'nudge'
>

export const acquireIdentity = async (
  agent: SearchingAgent,
  providers: readonly IdentityProvider[],
  need: Need,
  none: Trouble,
): Promise<Found> => {
  // Without an identity the machine shows at most the certificate of its image.
  const bootstrap = readBootstrapCertificate(agent.config)
  if (agent.keeper.credentials().identity === null && bootstrap.kind === 'certificate') agent.record.source('static')
  if (bootstrap.kind === 'broken') {
    agent.log.warn({ code: bootstrap.trouble.code, next: bootstrap.trouble.next }, bootstrap.trouble.text)
  }
  const over = new AbortController()
  const signal = AbortSignal.any([agent.signal, over.signal])
  const searching = firstIdentity(providers, need, none, signal)
  const better = betterIdentity(withSignal(agent, signal), providers, () => 'plane').then((source): Found => {
    if (source === null) return { kind: 'failed', outcome: { kind: 'stopped' } }
    return { kind: 'identity', source, passedOver: [] }
  })
  const found = await Promise.race([searching, better])
  over.abort()
  await Promise.allSettled([searching, better])
  if (found.kind === 'identity') tell(agent, found)
  return found
}

const tell = ({ record, log }: SearchingAgent, { source, passedOver }: Extract<Found, { kind: 'identity' }>): void => {
  record.source(source)
  for (const { source: broken, trouble } of passedOver) {
    log.warn({ source: broken, inUse: source, code: trouble.code, next: trouble.next }, trouble.text)
  }
}

const everyMs = 300_000

/**
 * Sources that the agent would prefer are asked again now and then: one that was not there at the start of the machine may
 * be by now. What they give goes through the keeper, so that a change of source is a rotation. Resolves with the source
 * that has just given an identity; null when stopped before.
 */
export const betterIdentity = async (
  agent: Pick<AgentParts, 'timers' | 'random' | 'log' | 'nudge' | 'signal'>,
  providers: readonly IdentityProvider[],
  inUse: () => IdentitySource,
): Promise<IdentitySource | null> => {
  while (!agent.signal.aborted) {
    await nudgedPause(agent, everyMs * (1 - agent.random.unit() / 4))
    for (const { source, provide } of betterThan(providers, inUse())) {
      if (agent.signal.aborted) return null
      const provided = await provide('better', agent.signal)
      if (provided.kind === 'identity') return source
      if (provided.kind === 'broken') {
        agent.log.warn({ source, code: provided.trouble.code, next: provided.trouble.next }, provided.trouble.text)
      }
    }
  }
  return null
}
