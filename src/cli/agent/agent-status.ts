import { agentStatus } from '#agent/diagnostics/status.ts'
import { agentFolder, lookedAt, type AgentFolderOptions } from './agent-folder.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

export const showAgentStatus = (cli: Cli, options: GlobalOptions & AgentFolderOptions): Promise<void> => {
  const status = lookedAt(() => agentStatus(agentFolder(cli, options), cli.clock))
  printer(cli, options).answer(status, () =>
    status.sentences.map((sentence) => asCalled(printable(sentence), cli.program)),
  )
  if (!status.healthy) cli.finish(exitCodes.notReady)
  return Promise.resolve()
}
