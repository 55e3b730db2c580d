// How verbs act on nodes: on ids at once, by a selector as planned.

import { mostPlanned, type PlanAction } from '#domain/plans/plan.ts'
import type { NodeChangeBody, NodeSelection } from '#wire/plans/node-changes.ts'
import type { PlanActionBody } from '#wire/plans/plan-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { givenPlan, planOrDo, type PlanOptions } from '#cli/plans/plan.ts'
import type { SelectOptions } from './select-options.ts'
import { inLots, targetNodes } from './target-nodes.ts'

export type NodeVerbOptions = PlanOptions & SelectOptions

type NodeVerb<O extends NodeVerbOptions> = {
  readonly verb: string
  readonly kind: PlanAction['kind']
  /** What a plan is computed for. Throws where an option is missing or wrong. */
  readonly actionOn: (
    options: O,
    on: { readonly nodes: string[] } | { readonly select: NodeSelection },
  ) => PlanActionBody
  /** On ids, without a plan; null: several ids are planned too. */
  readonly onIds: (cli: Cli, options: O, ids: readonly string[]) => Promise<void> | null
}

export const onNodes =
  <O extends NodeVerbOptions>({ verb, kind, actionOn, onIds }: NodeVerb<O>) =>
  async (cli: Cli, options: O, words: readonly string[]): Promise<void> => {
    if (await givenPlan(cli, options, kind, words)) return
    const target = await targetNodes(cli, options, words, verb)
    if (target.kind === 'selections') {
      return planOrDo(
        cli,
        options,
        target.selections.map((select) => actionOn(options, { select })),
      )
    }
    const done = options.plan === true ? null : onIds(cli, options, target.ids)
    if (done !== null) return done
    const { ids } = target
    // A plan names fewer nodes than it may select.
    const actions =
      ids.length <= mostPlanned
        ? [actionOn(options, { nodes: [...ids] })]
        : inLots(ids).map((names) => actionOn(options, { select: { names } }))
    return planOrDo(cli, options, actions)
  }

/** For changes, which have no plan for ids of their own. */
export const changing =
  <O extends NodeVerbOptions>(changeOf: (options: O) => NodeChangeBody) =>
  (options: O, on: { readonly nodes: string[] } | { readonly select: NodeSelection }): PlanActionBody => ({
    kind: 'change-nodes',
    select: 'select' in on ? on.select : { names: on.nodes },
    change: changeOf(options),
  })
