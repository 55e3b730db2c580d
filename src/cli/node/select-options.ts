// Options that say which nodes are meant. All that are given have to hold of a node.

import { Option, type Command } from 'commander'
import { conditionNames, membershipKinds, type ConditionName, type Membership } from '#domain/core/node.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { collect, plans } from '#cli/kit/verb.ts'

export type NodeFilter = {
  readonly state?: Membership['kind']
  readonly profile?: string
  readonly vcluster?: string
  readonly condition?: ConditionName
  readonly tag?: readonly string[]
  readonly connected?: 'yes' | 'no'
}

export const filterNames = ['state', 'profile', 'vcluster', 'condition', 'tag', 'connected'] as const

export const filters = (command: Command): Command =>
  command
    .addOption(new Option('--state <state>', 'only nodes in this state').choices(membershipKinds))
    .option('--profile <name>', 'only nodes of this profile')
    .option('--vcluster <name>', 'only nodes in this vCluster; none: those in no vCluster')
    .addOption(new Option('--condition <name>', 'only nodes with this condition').choices(conditionNames))
    .option('--tag <tag>', 'only nodes with this tag: KEY or KEY=VALUE; may be repeated', collect)
    .addOption(new Option('--connected <answer>', 'only nodes with an open channel, or without').choices(['yes', 'no']))

export type SelectOptions = NodeFilter & { readonly from?: string; readonly yes?: boolean }

/** For verbs that act on nodes: by a selector they show a plan first. */
export const selects = (command: Command): Command =>
  plans(filters(command))
    .option('--from <file>', 'nodes whose names are in this file, one a line (- for standard input)')
    .option('--yes', 'do it at once, without a look at the plan')
    .addHelpText('after', selectorHelp)

const selectorHelp = `Nodes are ids, globs such as 'gpu-*', and - for names on standard input. Chosen by anything but ids, it
shows a plan and does nothing without --yes (exit code ${exitCodes.onlyPlanned}).`
