// How an agent ends, and how its run with one identity ends. A failure that can resolve without a person never ends an agent.

import type { Trouble } from './trouble.ts'

export type AgentOutcome =
  /** Asked to. */
  | { readonly kind: 'stopped' }
  /** The plane said no, and asking again would not change that. */
  | { readonly kind: 'refused'; readonly trouble: Trouble }
  /** The node is a tombstone: its identity is gone for good. */
  | { readonly kind: 'revoked'; readonly trouble: Trouble }
  /** The server could not be recognised before the first enrollment; nothing was sent to it. */
  | { readonly kind: 'untrusted'; readonly trouble: Trouble }
  /** The agent was not given what it needs, or its state is damaged. */
  | { readonly kind: 'misconfigured'; readonly trouble: Trouble }

/** After sysexits.h. The unit restarts the agent after `untrusted` (clocks and routes get repaired), not after the rest. */
export const agentExitCodes = {
  stopped: 0,
  untrusted: 76,
  refused: 77,
  revoked: 77,
  misconfigured: 78,
} as const satisfies Record<AgentOutcome['kind'], number>

export type RunEnd =
  | { readonly kind: 'stopped' }
  /** The plane no longer accepts this identity; another source of identity may work. */
  | {
      readonly kind: 'rejoin'
      readonly trouble: Trouble
      /** The retry time the plane named, where many agents are sent away in the same moment; 0: at once. */
      readonly afterMs: number
    }
  | { readonly kind: 'revoked'; readonly trouble: Trouble }
