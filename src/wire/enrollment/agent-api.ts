// The executables of the agent that the plane hands out to machines.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

/** As Node names them. */
export const agentArchitectures = ['x64', 'arm64'] as const
export type AgentArchitecture = (typeof agentArchitectures)[number]

/** SHA-256 of the bytes as they are served, hex. */
export const agentDigestShape = '^[0-9a-f]{64}$'

const DigestParams = Type.Object({ digest: Type.String({ pattern: agentDigestShape }) }, closed)

export const AgentExecutableView = Type.Object({
  architecture: oneOf(agentArchitectures),
  /** `sha256:` and the SHA-256 of the file as it is served, in hex. */
  digest: Type.String(),
  bytes: Type.Integer(),
  /** Where machines get it. */
  url: Type.String(),
  /** Its name in the folder. */
  file: Type.String(),
  /** New bundles name it. The others are handed out to machines whose bundle is older. */
  current: Type.Boolean(),
})
export type AgentExecutableView = Static<typeof AgentExecutableView>

export const AgentExecutableList = Type.Object({
  /** Null: no folder is there, and no agent is handed out. */
  folder: orNull(Type.String()),
  agents: Type.Array(AgentExecutableView),
  /** Files of that folder that are not handed out, each in a sentence. */
  faults: Type.Array(Type.String()),
  /** Digests are being computed: there may be more in a moment. */
  reading: Type.Boolean(),
})

export const agentExecutableApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/agents',
    access: 'viewer',
    summary: 'The executables of the agent that this plane hands out to machines',
    answer: AgentExecutableList,
  }),
}

export const agentDownloadApi = {
  download: endpoint({
    method: 'GET',
    path: '/v1/agent/:digest',
    access: 'machine',
    file: { contentType: 'application/gzip' },
    summary: 'An executable of the agent, compressed by gzip, by the SHA-256 of these bytes',
    params: DigestParams,
  }),
}
