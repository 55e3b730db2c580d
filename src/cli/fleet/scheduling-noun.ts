import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareScheduling = (program: Command, cli: Cli): void => {
  const scheduling = noun(program, 'scheduling', 'Where work may be placed, as a scheduler sees it', [
    ['muster scheduling watch --vcluster training', ''],
  ])

  const watch = verb(scheduling, 'watch', 'All nodes, then each whose scheduling may have changed, as it happens', [
    ['muster scheduling watch', 'ends by Ctrl-C'],
    ['muster scheduling watch --vcluster training -o json', 'one object a line, for programs'],
  ]).option('--vcluster <name>', 'only nodes of this vCluster, and those that leave it')
  performs(cli, watch, async () => (await import('./scheduling-watch.ts')).schedulingWatch)
}
