import { Option, type Command } from 'commander'
import { allocationStates } from '#domain/fleet/allocation.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareAllocation = (program: Command, cli: Cli): void => {
  const allocation = noun(program, 'allocation', 'Work on nodes: who has placed what where', [
    ['muster allocation list --node gpu-001', ''],
    ['muster allocation create job-17 --node gpu-001 --vcluster training --owner slurm', ''],
    ['muster allocation release job-17', ''],
  ])
  const verbs = () => import('./allocation-verbs.ts')

  const create = verb(allocation, 'create <id>', 'Place work on a schedulable node; safe to repeat with the same id', [
    ['muster allocation create job-17 --node gpu-001 --vcluster training --owner slurm', ''],
  ])
    .requiredOption('--node <id>', 'the node it runs on')
    .requiredOption('--vcluster <name>', 'the vCluster the node has to be in')
    .requiredOption('--owner <name>', 'who is told when it has to go')
  performs(cli, create, async () => (await verbs()).allocationCreate)

  const list = verb(allocation, 'list', 'List allocations: where, whose, in which state', [
    ['muster allocation list', 'all that are not released'],
    ['muster allocation list --node gpu-001 --state releasing', 'what a drain still waits for'],
    ['muster allocation list -o json', 'for scripts'],
  ])
    .option('--node <id>', 'only those on this node')
    .option('--vcluster <name>', 'only those of this vCluster')
    .addOption(
      new Option('--state <state>', 'only those in this state; live is running or releasing')
        .choices(['live', 'all', ...allocationStates])
        .default('live'),
    )
  performs(cli, list, async () => (await verbs()).allocationList)

  const show = verb(allocation, 'show <id>', 'One allocation, and what became of it', [
    ['muster allocation show job-17', ''],
  ])
  performs(cli, show, async () => (await verbs()).allocationShow)

  const release = verb(allocation, 'release <id>', 'Give work back; the last of a node that drains ends the drain', [
    ['muster allocation release job-17', ''],
    ['muster allocation release job-17 --reason "moved to gpu-002"', ''],
  ]).option('--reason <text>', 'why; goes into the journal')
  performs(cli, release, async () => (await verbs()).allocationRelease)
}
