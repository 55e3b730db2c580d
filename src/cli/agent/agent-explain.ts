import { explainAgent, explanationLines } from '#agent/diagnostics/explain.ts'
import { agentFolder, lookedAt, type AgentFolderOptions } from './agent-folder.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

/** The answer is the explanation, whatever it is of: this succeeds also where nothing else does. */
export const agentExplain = (cli: Cli, options: GlobalOptions & AgentFolderOptions): Promise<void> => {
  const told = lookedAt(() => explainAgent(agentFolder(cli, options), cli.clock))
  printer(cli, options).answer(told, () => explanationLines(told).map((line) => asCalled(printable(line), cli.program)))
  return Promise.resolve()
}
