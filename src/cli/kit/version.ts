import type { Command } from 'commander'
import type { Cli, GlobalOptions } from './cli.ts'
import { performs, documented } from './verb.ts'

export const declareVersion = (version: Command, cli: Cli): void => {
  documented(version, [['muster version', '']])
  performs(cli, version, printVersion)
}

const printVersion = (cli: Cli, options: GlobalOptions): Promise<void> => {
  const text = options.output === 'json' ? JSON.stringify({ version: cli.version }) : `muster ${cli.version}`
  cli.out.write(text + '\n')
  return Promise.resolve()
}
