// What an agent says of its overlay, as conditions of its node. Each state says all of it: what it no longer shows is over.

import { decideTold, type ToldFacts, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { ConditionName, Node } from '#domain/core/node.ts'

/** As much of it as is decided on. */
export type OverlayShown = {
  readonly applied: boolean
  readonly detail: string | null
  /** What is no longer what was applied, in words. */
  readonly drift: readonly string[]
}

export type OverlayFacts = NodeFacts & { readonly shown: OverlayShown }

const about = ['overlay_failed', 'config_drift'] as const satisfies readonly ConditionName[]

export const decideOverlayShown = ({ shown, ...facts }: OverlayFacts): NodeDecided | Unchanged =>
  decideTold({ ...facts, about, told: [...failure(shown), ...drift(facts.node.value, shown)] })

const failure = ({ applied, detail }: OverlayShown): ToldFacts['told'] =>
  applied
    ? []
    : [
        {
          name: 'overlay_failed',
          reason: 'what the node has to run could not be put in place',
          evidence: { detail },
        },
      ]

/** In maintenance mode nothing is declared that it could drift from. */
const drift = ({ assignment }: Node, { drift: lines }: OverlayShown): ToldFacts['told'] =>
  assignment === null || lines.length === 0
    ? []
    : [
        {
          name: 'config_drift',
          reason: `what runs there is no longer what ${assignment} asks for`,
          evidence: { first: lines[0] ?? null, differences: lines.length },
        },
      ]
