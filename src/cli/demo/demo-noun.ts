import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { performs, verb } from '#cli/kit/verb.ts'

export const declareDemo = (program: Command, cli: Cli): void => {
  const demo = verb(
    program,
    'demo',
    'A plane with real agents in a temporary folder, to look around in; Ctrl-C removes it',
    [
      ['muster demo', '25 agents'],
      ['muster demo --nodes 200', ''],
    ],
  ).option('--nodes <count>', 'how many agents', '25')
  performs(cli, demo, async () => (await import('./demo.ts')).demo)

  const agents = program.command('demo-agents', { hidden: true }).argument('<folder>')
  performs(cli, agents, async () => (await import('./demo-agents.ts')).demoAgents)
}
