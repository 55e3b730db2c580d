// `muster task create` for many nodes: a plan first, then a rollout.

import type { Command } from 'commander'
import { isGlob } from '#domain/fleet/node-selector.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { collect } from '#cli/kit/verb.ts'
import { planAndDo, planOrDo, type PlanOptions } from '#cli/plans/plan.ts'
import type { PlanActionBody } from '#wire/plans/plan-api.ts'
import { rolloutApi } from '#wire/tasks/rollout-api.ts'
import { awaitRollout, showRollout } from './rollout-lines.ts'

export type ManyOptions = PlanOptions & {
  readonly node?: readonly string[]
  readonly vcluster?: string
  readonly profile?: string
  readonly tag?: readonly string[]
  readonly concurrency?: string
  readonly failures?: string
  readonly key?: string
  readonly wait?: boolean
}

export const manyOptions = (command: Command): Command =>
  command
    .option('--node <id>', "the node that is to carry it out; repeatable, and globs such as 'gpu-*'", collect)
    .option('--vcluster <name>', 'every node of this vCluster')
    .option('--profile <name>', 'every node of this profile')
    .option('--tag <tag>', 'every node with this tag: KEY or KEY=VALUE; repeatable', collect)
    .option('--concurrency <count>', 'of many nodes: how many at once (default: 10)')
    .option('--failures <count>', 'of many nodes: hold the rest after so many failures (default: 1)')
    .option('--plan', 'show which nodes would get it, and do nothing')
    .option('--yes', 'of many nodes: do it at once, without a look at the plan')

/** Null: one node is named, and nothing else. */
export const selectionIn = ({ node = [], vcluster, profile, tag, plan }: ManyOptions) => {
  const [only] = node
  const filtered = (vcluster ?? profile ?? tag) !== undefined
  if (only === undefined && !filtered)
    throw usageFailure('Which node?', 'Name it: --node ID, or select many: --vcluster NAME, --profile NAME, --tag TAG')
  if (node.length === 1 && only !== undefined && !isGlob(only) && !filtered && plan !== true) return null
  return {
    ...(node.length === 0 ? {} : { names: [...node] }),
    ...(vcluster === undefined ? {} : { vcluster }),
    ...(profile === undefined ? {} : { profile }),
    ...(tag === undefined ? {} : { tags: tag.map((one) => one.toLowerCase()) }),
  }
}

type ManyTasks = Pick<Extract<PlanActionBody, { kind: 'create-tasks' }>, 'type' | 'parameters' | 'expires_in_ms'>

export const createMany = async (
  cli: Cli,
  options: ManyOptions,
  select: NonNullable<ReturnType<typeof selectionIn>>,
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
