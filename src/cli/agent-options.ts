// The options of `agent run` as a configuration, or a failure that says which is wrong.

import { agentConfig, type AgentConfig, type AgentOptions } from '#agent/config.ts'
import type { Cli } from './cli.ts'
import { usageFailure } from './failure.ts'
import { readFileIfAny } from '#platform/files.ts'

const longestJoin = 4096

export const agentConfigOf = async (cli: Cli, options: AgentOptions): Promise<AgentConfig> => {
  const parsed = await agentConfig(options, cli.env, (place) =>
    place === '-' ? cli.input.readAll(longestJoin) : Promise.resolve(readFileIfAny(place)),
  )
  if (parsed.kind === 'invalid') throw usageFailure(`${parsed.why}.`, 'muster agent run --help')
  return parsed.config
}
