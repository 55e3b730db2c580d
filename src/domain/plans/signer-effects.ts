// What a change of task signers would mean, before it is made: for the signers, and for nodes that have not received it.

import type { Row } from '#domain/core/change.ts'
import { signingOf, type Signer, type TaskSigners } from '#domain/tasks/signers.ts'
import type { PlanEffect } from './plan.ts'

export type SignerPlanFacts = {
  readonly row: Row<TaskSigners>
  /** How many nodes have reported each number of a statement. */
  readonly reported: ReadonlyMap<number, number>
}

/** Of `signer rotate --now`. */
export const rotationNowOf = (facts: SignerPlanFacts): readonly PlanEffect[] => {
  const { value, version } = facts.row
  const before = signingOf(value)
  return [
    ...(before === null
      ? []
      : [
          harmless(
            before,
            'signs nothing more; what it has signed is accepted until it expires, 24 h at most',
            listFact(version),
          ),
        ]),
    ...successorOf(facts),
  ]
}

export const signerWithdrawalOf = (facts: SignerPlanFacts, signer: Signer): readonly PlanEffect[] => {
  const isOver = signer.state.kind === 'withdrawn' || signer.state.kind === 'retired'
  if (isOver) return [harmless(signer, `nothing: it is ${signer.state.kind} already`, listFact(facts.row.version))]
  return [
    {
      subject: `signer ${signer.key}`,
      effect: 'withdrawn: nothing it has signed is accepted any more, and its key is destroyed',
      loses: 'at once',
      unrecoverable: 'for good',
      facts: [signer.state.kind, versionOf(signer), listFact(facts.row.version)],
    },
    ...(signer.state.kind === 'signing' ? successorOf(facts) : []),
  ]
}

/** As `signer list` shows it. */
const versionOf = ({ version }: Pick<Signer, 'version'>): string => `version ${version}`

/** Of all signers: a plan is stale once any of them has changed. */
const listFact = (version: number): string => `revision ${version} of the signers`

const harmless = ({ key, state, version }: Signer, effect: string, ...facts: readonly string[]): PlanEffect => ({
  ...{ subject: `signer ${key}`, effect, loses: null, unrecoverable: null },
  facts: [state.kind, versionOf({ version }), ...facts],
})

/** The one that signs from then on, and the nodes that do not accept it yet. */
const successorOf = ({ row, reported }: SignerPlanFacts): readonly PlanEffect[] => {
  const next = row.value.signers.find(({ state }) => state.kind === 'next') ?? null
  const all = [...reported.values()].reduce((sum, nodes) => sum + nodes, 0)
  const have = [...reported].reduce(
    (sum, [number, nodes]) => (next !== null && number >= next.firstNumber ? sum + nodes : sum),
    0,
  )
  const line = { loses: null, unrecoverable: null } as const
  return [
    next === null
      ? { ...line, subject: 'signer', effect: 'a new one is made, and signs at once', facts: ['none is next'] }
      : harmless(next, 'signs at once'),
    {
      ...line,
      subject: 'nodes',
      effect:
        all === have
          ? 'accept it already'
          : `${all - have} refuse tasks until they have fetched a statement, which connected ones do at once`,
      facts: [`${have} of ${all} that take tasks have it`],
    },
  ]
}
