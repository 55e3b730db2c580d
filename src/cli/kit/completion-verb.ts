import type { Cli, GlobalOptions } from './cli.ts'
import { completionScript, type Shell } from './completion-script.ts'
import { printer } from './print.ts'

export const completionVerb = (cli: Cli, options: GlobalOptions, shell: Shell): Promise<void> => {
  const script = completionScript(shell)
  printer(cli, options).answer({ shell, script }, () => script.trimEnd().split('\n'))
  return Promise.resolve()
}
