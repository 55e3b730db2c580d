// Reads agent.toml from the host: only where no user but root and the one who reads it can have written it.

import { readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { parseAgentToml, type AgentToml } from './agent-toml.ts'
import { refused, type Refused } from './verbs.ts'

const longestFile = 64 * 1024

export type Allowed = { readonly kind: 'allowed'; readonly toml: AgentToml }

export const readAgentToml = (file: string, trust: Trust): Allowed | Refused => {
  const read = readTrustedFile(file, trust, longestFile)
  if ('fault' in read) return refused('CONFIG_INVALID', read.fault)
  const parsed = parseAgentToml(read.text)
  return parsed.kind === 'allowed' ? parsed : refused('CONFIG_INVALID', `${file}: ${parsed.why}`)
}
