// The sources of an agent's identity, in order of preference. "Not mine" leads to the next source. "Mine but broken" is
// reported and leads to the next source as well: a better source that fails must not disable one that works. Only a refusal
// ends the search: going on would avoid the refusal.

import type { AgentOutcome } from '#agent/core/outcome.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import type { IdentitySource } from './credentials.ts'

/**
 * `start`: the agent has just begun. `rejoin`: the plane no longer takes the identity it has. `better`: there is one that
 * works, from a lesser source.
 */
export type Need = 'start' | 'rejoin' | 'better'

export type Provided =
  /** The keeper has a new identity: an open channel rotates to it as after a renewal. */
  | { readonly kind: 'identity' }
  /** Nothing for this provider to do here; ask the next. */
  | { readonly kind: 'not-mine' }
  /** It is responsible and does not work. */
  | { readonly kind: 'broken'; readonly trouble: Trouble }
  /** It was asked, and the answer was no. */
  | { readonly kind: 'failed'; readonly outcome: AgentOutcome }

export type IdentityProvider = {
  readonly source: IdentitySource
  /** Ends soon after `signal` is aborted, with an outcome of `stopped`. Throws only for bugs. */
  provide(need: Need, signal: AbortSignal): Promise<Provided>
}

export type Found =
  | { readonly kind: 'identity'; readonly source: IdentitySource; readonly passedOver: readonly PassedOver[] }
  | { readonly kind: 'failed'; readonly outcome: AgentOutcome }

export type PassedOver = { readonly source: IdentitySource; readonly trouble: Trouble }

export const firstIdentity = async (
  providers: readonly IdentityProvider[],
  need: Need,
  none: Trouble,
  signal: AbortSignal,
): Promise<Found> => {
  const passedOver: PassedOver[] = []
  for (const { source, provide } of providers) {
    const provided = await provide(need, signal)
    switch (provided.kind) {
      case 'identity':
        return { kind: 'identity', source, passedOver }
      case 'failed':
        return provided
      case 'broken':
        passedOver.push({ source, trouble: provided.trouble })
        break
      case 'not-mine':
        break
    }
  }
  return { kind: 'failed', outcome: { kind: 'misconfigured', trouble: passedOver[0]?.trouble ?? none } }
}

/** Those that are preferred to this one. */
export const betterThan = (
  providers: readonly IdentityProvider[],
  source: IdentitySource,
): readonly IdentityProvider[] => {
  const at = providers.findIndex((provider) => provider.source === source)
  return at === -1 ? providers : providers.slice(0, at)
}
