// What an agent says of its overlay, as conditions of its node. Each state says all of it: what it no longer shows is over.

import { reconcileConditions, type ConditionReport, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { Condition, ConditionName, Node } from '#domain/core/node.ts'

/** As much of it as is decided on. */
export type OverlayShown = {
  readonly applied: boolean
  readonly detail: string | null
  /** What is no longer what was applied, in words. */
  readonly drift: readonly string[]
  /** Those that do not run. */
  readonly failed: readonly ServiceFailure[]
  /** The checks that failed. */
  readonly unhealthy: readonly CheckFailure[]
}

export type ServiceFailure = {
  readonly name: string
  /** Null: its agent does not say. */
  readonly error: string | null
  /** The last lines it wrote, the newest last. */
  readonly output: readonly string[]
}

export type CheckFailure = { readonly name: string; readonly line: string }

export type OverlayFacts = NodeFacts & { readonly shown: OverlayShown }

const always = ['overlay_failed', 'config_drift', 'service_failed'] as const satisfies readonly ConditionName[]

export const decideOverlayShown = ({ shown, ...facts }: OverlayFacts): NodeDecided | Unchanged => {
  const { value } = facts.node
  // What an operator or another health checker has said ends by their word only.
  const checks = isSaidElsewhere(value) ? [] : checkFailures(shown)
  return reconcileConditions({
    ...facts,
    about: isSaidElsewhere(value) ? always : [...always, 'unhealthy'],
    newestReason: ['service_failed', 'unhealthy'],
    reported: [...failure(shown), ...drift(value, shown), ...serviceFailures(shown), ...checks],
  })
}

/** The fact in the evidence of `unhealthy` that names the check of the agent's own. */
export const ownCheck = 'agent_check'

const isSaidElsewhere = ({ conditions }: Node): boolean =>
  conditions.some(({ name, evidence }) => name === 'unhealthy' && evidence[ownCheck] === undefined)

type Reported = ConditionReport['reported']

const failure = ({ applied, detail }: OverlayShown): Reported =>
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
const drift = ({ assignment }: Node, { drift: lines }: OverlayShown): Reported =>
  assignment === null || lines.length === 0
    ? []
    : [
        {
          name: 'config_drift',
          reason: `what runs there is no longer what ${assignment} asks for`,
          evidence: { first: lines[0] ?? null, differences: lines.length },
        },
      ]

const mostLines = 4

/** The reason names them and not how they failed: one that fails in turns in two ways is one failure. */
const serviceFailures = ({ failed }: OverlayShown): Reported => {
  const [first] = failed
  if (first === undefined) return []
  const lines = first.output.slice(-mostLines).map((line, at): [string, string] => [`line_${at + 1}`, line])
  return [
    {
      name: 'service_failed',
      reason: `${failed.length === 1 ? 'service' : 'services'} ${failed.map(({ name }) => name).join(', ')} not running`,
      evidence: { service: first.name, error: first.error, ...Object.fromEntries(lines) },
    },
  ]
}

const checkFailures = ({ unhealthy }: OverlayShown): Reported => {
  const condition = unhealthyBy(unhealthy)
  return condition === null ? [] : [condition]
}

/** Null: all of them pass. */
export const unhealthyBy = (
  failed: readonly CheckFailure[],
):
  | (Pick<Condition, 'reason' | 'evidence'> & {
      readonly name: 'unhealthy'
    })
  | null => {
  const [first] = failed
  if (first === undefined) return null
  const names = failed.map(({ name }) => name).join(', ')
  return {
    name: 'unhealthy',
    reason: `${failed.length === 1 ? 'check' : 'checks'} ${names} failed`,
    evidence: { [ownCheck]: first.name, says: first.line },
  }
}
