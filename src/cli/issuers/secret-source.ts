// Where a secret on the command line comes from: a file, a systemd credential or the environment. Never an argument: every user of the
// machine sees those.

import * as path from 'node:path'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'

export const sourceForms = 'file:PATH (- for standard input), credential:NAME or env:VARIABLE'

const longest = 32_768

/** Without the line break at its end. What was given is not repeated: it may be the secret itself. */
export const readSecret = async (cli: Cli, option: string, source: string): Promise<string> => {
  const [, kind, name] = /^(file|credential|env):(.+)$/s.exec(source) ?? []
  if (kind === undefined || name === undefined) throw usageFailure(`${option} takes ${sourceForms}.`)
  const text = (await textFrom(cli, option, kind, name)).replace(/\r?\n$/, '')
  if (text === '') throw usageFailure(`${option}: there is nothing in ${kind}:${name}.`)
  return text
}

const textFrom = async (cli: Cli, option: string, kind: string, name: string): Promise<string> => {
  switch (kind) {
    case 'env':
      return cli.env[name] ?? ''
    case 'credential': {
      const folder = cli.env['CREDENTIALS_DIRECTORY']
      if (folder === undefined || folder === '')
        throw usageFailure(
          `${option}: there are no credentials of systemd here.`,
          'Run it with systemd-run -p LoadCredential=...',
        )
      if (!/^[A-Za-z0-9_.-]+$/.test(name) || name.startsWith('.'))
        throw usageFailure(`${option}: credential:NAME takes the name of a credential.`)
      return readText(cli, path.join(folder, name), longest)
    }
    default:
      return readText(cli, name, longest)
  }
}
