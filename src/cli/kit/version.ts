import type { Command } from 'commander'
import { packagedLicenses } from '#platform/packaged.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { performs, documented } from './verb.ts'

export const declareVersion = (version: Command, cli: Cli): void => {
  documented(version, [
    ['muster version', ''],
    ['muster version --licenses', 'of Muster, Node.js and every package in the executable'],
  ]).option('--licenses', 'print the licenses of what this program holds')
  performs(cli, version, printVersion)
}

type VersionOptions = GlobalOptions & { readonly licenses?: boolean }

const printVersion = (cli: Cli, options: VersionOptions): Promise<void> => {
  cli.out.write(options.licenses === true ? licenses() : versionText(cli, options))
  return cli.out.drained()
}

const versionText = (cli: Cli, { output }: GlobalOptions): string =>
  `${output === 'json' ? JSON.stringify({ version: cli.version }) : `muster ${cli.version}`}\n`

const licenses = (): string =>
  packagedLicenses() ??
  'This is no executable: the licenses are in LICENSE and in the folders of node_modules, or at the end of the script.\n'
