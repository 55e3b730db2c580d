import { agentStatus } from '#agent/status.ts'
import { agentFolder, lookedAt, type AgentFolderOptions } from './agent-folder.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { asCalled } from './failure.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const showAgentStatus = (cli: Cli, options: GlobalOptions & AgentFolderOptions): Promise<void> => {
  const status = lookedAt(() => agentStatus(agentFolder(cli, options), cli.clock))
  printer(cli, options).answer(status, () =>
    status.sentences.map((sentence) => asCalled(printable(sentence), cli.program)),
  )
  if (!status.healthy) cli.finish(exitCodes.notReady)
  return Promise.resolve()
}
