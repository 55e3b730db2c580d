// The options of `agent run` as a configuration, or a failure that says which is wrong.

import { agentConfig, type AgentConfig, type AgentOptions } from '#agent/core/config.ts'
import { readFileIfAny } from '#platform/files.ts'
import { isStream } from '#platform/paths.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'

const longestJoin = 4096

export const agentConfigOf = async (cli: Cli, options: AgentOptions): Promise<AgentConfig> => {
  const parsed = await agentConfig(oncePerStream(options), cli.env, (place) =>
    place === '-' ? readOnce(cli, options.joinFile ?? '-') : Promise.resolve(readIfAllowed(place)),
  )
  if (parsed.kind === 'invalid') throw usageFailure(`${parsed.why}.`, 'muster agent run --help')
  return parsed.config
}

/** `--join-file <(muster token create ...)` is read like standard input: now, and not again when it is needed. */
const oncePerStream = (options: AgentOptions): AgentOptions =>
  options.joinFile !== undefined && isStream(options.joinFile) ? { ...options, joinFile: '-' } : options

const readOnce = (cli: Cli, place: string): Promise<string | null> => {
  if (place !== '-') return Promise.resolve(readIfAllowed(place))
  if (cli.input.isTerminal) cli.err.write('Paste the join string, then press Enter and Ctrl-D.\n')
  return cli.input.readAll(longestJoin)
}

/** One that may not be read is no trouble while there is an identity; enrolling says so then. */
const readIfAllowed = (file: string): string | null => {
  try {
    return readFileIfAny(file)
  } catch {
    return null
  }
}
