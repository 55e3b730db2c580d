// The ways an agent comes by an identity, asked in order. Recovery and SPIRE will be further entries of that list.

import type { AgentOutcome } from '../outcome.ts'
import type { Trouble } from '../trouble.ts'

/** `start`: the agent has just begun. `rejoin`: the plane no longer takes the identity it has. */
export type Need = 'start' | 'rejoin'

export type Provided =
  /** The keeper has it. */
  | { readonly kind: 'identity' }
  /** Nothing for this provider to do here; ask the next. */
  | { readonly kind: 'not-mine' }
  /** It was responsible and the answer was no: the next is not asked. */
  | { readonly kind: 'failed'; readonly outcome: AgentOutcome }

export type IdentityProvider = {
  readonly name: string
  /** Throws when it is responsible but broken. */
  provide(need: Need): Promise<Provided>
}

export const firstIdentity = async (
  providers: readonly IdentityProvider[],
  need: Need,
  none: Trouble,
): Promise<Exclude<Provided, { kind: 'not-mine' }>> => {
  for (const provider of providers) {
    const provided = await provider.provide(need)
    if (provided.kind !== 'not-mine') return provided
  }
  return { kind: 'failed', outcome: { kind: 'misconfigured', trouble: none } }
}
