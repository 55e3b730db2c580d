import { defaultStateFolder } from '#agent/config.ts'
import { agentStatus, type AgentStatus } from '#agent/status.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { asCalled, Failure } from './failure.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const showAgentStatus = (cli: Cli, options: GlobalOptions & { readonly state?: string }): Promise<void> => {
  const folder = options.state ?? cli.env['MUSTER_AGENT_STATE'] ?? cli.env['STATE_DIRECTORY'] ?? defaultStateFolder
  const status = statusIn(folder, cli)
  printer(cli, options).answer(status, () =>
    status.sentences.map((sentence) => asCalled(printable(sentence), cli.program)),
  )
  if (!status.healthy) cli.finish(exitCodes.notReady)
  return Promise.resolve()
}

const statusIn = (folder: string, cli: Cli): AgentStatus => {
  try {
    return agentStatus(folder, cli.clock)
  } catch (error) {
    throw new Failure({
      exit: exitCodes.notAllowed,
      code: 'NOT_PERMITTED',
      sentence: 'You may not see what the agent says of itself.',
      detail: error instanceof Error ? error.message : String(error),
      next: 'Run this as the user of the agent, or as root',
    })
  }
}
