// What a machine is given to start with: its name, the plane's address, the root's fingerprint and a token. All of
// it but the name is in the join string.

import { parseJoinString } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'

export type Bootstrap = {
  readonly nodeId: string
  readonly join: string
  /** How the agent gets there; null: it is on the machine already. */
  readonly agent: AgentSource | null
}

export type AgentSource = {
  /** An https URL, or a path on the machine. Not trusted: what comes from it has to have the digest. */
  readonly from: string
  /** Lower-case hex. */
  readonly sha256: string
}

/**
 * Null when it can be written into any of the formats. They are quoted all the same; this keeps what means something to
 * a shell, to YAML or to systemd from getting there at all, whoever the plane behind an address is.
 */
export const faultOfBootstrap = ({ nodeId, join, agent }: Bootstrap): string | null => {
  if (!new RegExp(nodeIdShape).test(nodeId)) return 'the name of the node is malformed'
  if (parseJoinString(join) === null || !/^[A-Za-z0-9:/.,_[\]-]+$/.test(join)) {
    return 'the join string holds characters that do not belong there'
  }
  if (agent === null) return null
  if (!/^[0-9a-f]{64}$/.test(agent.sha256)) return 'the digest of the agent is 64 hex digits'
  if (agent.from.startsWith('/')) {
    return /^(\/[\w.+@-]+)+$/.test(agent.from)
      ? null
      : 'the path of the agent holds characters that do not belong there'
  }
  const secure = URL.canParse(agent.from) && new URL(agent.from).protocol === 'https:'
  return secure && /^[\w:/.?&=%+@~-]+$/.test(agent.from) ? null : 'the address of the agent is an https URL or a path'
}
