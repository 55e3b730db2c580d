// `muster task create` for many nodes: a plan first, then a rollout.

import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { collect } from '#cli/kit/verb.ts'
import { filterNames, filters, type SelectOptions } from '#cli/node/select-options.ts'
import { targetNodes } from '#cli/node/target-nodes.ts'
import { planAndDo, planOrDo, type PlanOptions } from '#cli/plans/plan.ts'
import type { NodeSelection } from '#wire/plans/node-changes.ts'
import type { PlanActionBody } from '#wire/plans/plan-api.ts'
import { rolloutApi } from '#wire/tasks/rollout-api.ts'
import { awaitRollout, showRollout } from './rollout-lines.ts'

export type ManyOptions = PlanOptions &
  SelectOptions & {
    readonly node?: readonly string[]
    readonly params?: string
    readonly concurrency?: string
    readonly failures?: string
    readonly key?: string
    readonly wait?: boolean
  }

export const manyOptions = (command: Command): Command =>
  filters(
    command.option(
      '--node <id>',
      "the node that is to carry it out; repeatable, and globs such as 'gpu-*'; - for names on standard input",
      collect,
    ),
  )
    .option('--from <file>', 'nodes whose names are in this file, one a line (- for standard input)')
    .option('--concurrency <count>', 'of many nodes: how many at once (default: 10)')
    .option('--failures <count>', 'of many nodes: hold the rest after so many failures (default: 1)')
    .option('--plan', 'show which nodes would get it, and do nothing')
    .option('--yes', 'of many nodes: do it at once, without a look at the plan')

/** Null: one node is named, and nothing else. */
export const selectionIn = async (cli: Cli, options: ManyOptions): Promise<NodeSelection | null> => {
  const { node = [], from, params, plan } = options
  const isFiltered = filterNames.some((name) => options[name] !== undefined)
  if (node.length === 0 && from === undefined && !isFiltered)
    throw usageFailure('Which node?', 'Name it: --node ID, or select many: --vcluster NAME, --tag TAG, --from FILE')
  if (params === '-' && (from === '-' || node.includes('-')))
    throw usageFailure('Standard input has names or parameters, not both.', 'Put one of them into a file')
  const target = await targetNodes(cli, options, node, 'list')
  if (target.kind === 'ids') return target.ids.length === 1 && plan !== true ? null : { names: [...target.ids] }
  const [selection, ...more] = target.selections
  if (selection === undefined || more.length > 0)
    throw usageFailure('These are too many names for one rollout.', 'Give the nodes a tag, and select them by it')
  return selection
}

type ManyTasks = Pick<Extract<PlanActionBody, { kind: 'create-tasks' }>, 'type' | 'parameters' | 'expires_in_ms'>

export const createMany = async (
  cli: Cli,
  options: ManyOptions,
  select: NodeSelection,
  tasks: ManyTasks,
): Promise<void> => {
  const { concurrency, failures, key, plan, yes } = options
  if (key !== undefined) throw usageFailure('--key is for one node.', 'A plan is applied once: leave it out')
  if (plan === true && yes === true) throw usageFailure('--plan shows and --yes does: give one of them.')
  const action: PlanActionBody = {
    ...{ kind: 'create-tasks', select, ...tasks },
    ...(concurrency === undefined ? {} : { concurrency: countOf('--concurrency', concurrency) }),
    ...(failures === undefined ? {} : { failure_limit: countOf('--failures', failures) }),
  }
  if (yes !== true) return planOrDo(cli, options, [action])
  const { id } = await planAndDo(cli, options, action)
  const plane = connect(cli, options)
  if (options.wait === true) return awaitRollout(cli, options, plane, { id, withinMs: null })
  const print = printer(cli, options)
  showRollout(cli, print, await plane.ask(rolloutApi.show, { params: { id } }))
  print.note(`how it goes on: muster rollout wait ${id}`)
}

const countOf = (option: string, text: string): number => {
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (count < 1) throw usageFailure(`${option} ${text} is not a number from 1 on.`)
  return count
}
