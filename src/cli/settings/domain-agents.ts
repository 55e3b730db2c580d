// `muster domain agents`: what machines may fetch from the plane, and what is wrong with the rest.

import type { Cli } from '#cli/kit/cli.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { agentExecutableApi, type AgentExecutableView } from '#wire/enrollment/agent-api.ts'

export const domainAgents = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(agentExecutableApi.list)
  showList(cli, options, { items: answer.agents, columns, body: (agents) => ({ ...answer, agents }) })
  const print = printer(cli, options)
  for (const fault of answer.faults) print.note(`not handed out: ${printable(fault)}`)
  if (answer.reading) print.note('the plane is still reading them: there may be more in a moment')
  else if (answer.agents.length === 0) print.note(whereFrom(answer.folder))
}

const columns: readonly Column<AgentExecutableView>[] = [
  { name: 'file', cell: ({ file }) => file },
  { name: 'architecture', cell: ({ architecture }) => architecture },
  {
    name: 'bundles',
    cell: ({ current }) => (current ? { text: 'new', colour: 'green' } : { text: 'older', colour: 'dim' }),
  },
  { name: 'size', cell: ({ bytes }) => `${(bytes / 2 ** 20).toFixed(1)} MiB`, value: ({ bytes }) => bytes },
  { name: 'digest', cell: ({ digest }) => digest },
]

const whereFrom = (folder: string | null): string => {
  const files = 'muster-linux-x64.gz and muster-linux-arm64.gz (npm run build)'
  return folder === null
    ? `the plane hands out no agent: put ${files} into a folder, and start it with --agents FOLDER`
    : `the plane hands out no agent: put ${files} into ${printable(folder)}; they are noticed within half a minute`
}
