// Coming by an identity. The search may last for as long as the plane is away, and a better source may appear meanwhile: then
// the search is over.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import { readAdmission } from '#agent/link/admission.ts'
import { betterIdentity } from './better-source.ts'
import { firstIdentity, type Found, type IdentityProvider, type Need } from '#agent/state/provider.ts'

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
  // Until there is somebody to be, the machine shows at most what every machine of its image has.
  const admission = readAdmission(agent.config)
  if (agent.keeper.credentials().identity === null && admission.kind === 'admission') agent.record.source('static')
  if (admission.kind === 'broken') {
    agent.log.warn({ code: admission.trouble.code, next: admission.trouble.next }, admission.trouble.text)
  }
  const over = new AbortController()
  const signal = AbortSignal.any([agent.signal, over.signal])
  const searching = firstIdentity(providers, need, none, signal)
  const better = betterIdentity({ ...agent, signal }, providers, () => 'plane').then((source): Found => {
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
