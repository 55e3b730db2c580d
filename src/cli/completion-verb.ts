import type { Cli, GlobalOptions } from './cli.ts'
import { completionScript, type Shell } from './completion-script.ts'

export const completionVerb = (cli: Cli, _options: GlobalOptions, shell: Shell): Promise<void> => {
  cli.out.write(completionScript(shell))
  return Promise.resolve()
}
