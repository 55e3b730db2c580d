import { defaultStateFolder } from '#agent/config.ts'
import { agentStatus } from '#agent/status.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { asCalled } from './failure.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const showAgentStatus = (cli: Cli, options: GlobalOptions & { readonly state?: string }): Promise<void> => {
  const folder = options.state ?? cli.env['MUSTER_AGENT_STATE'] ?? cli.env['STATE_DIRECTORY'] ?? defaultStateFolder
  const status = agentStatus(folder, cli.clock)
  printer(cli, options).answer(status, () =>
    status.sentences.map((sentence) => asCalled(printable(sentence), cli.program)),
  )
  if (!status.healthy) cli.finish(exitCodes.notReady)
  return Promise.resolve()
}
