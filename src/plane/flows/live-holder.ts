// Who has a channel of this node open just now, as the decision about two holders of one identity needs to know it.

import type { NodeId } from '#domain/node.ts'
import type { AgentEvidence } from '#wire/agent-evidence.ts'

export type LiveHolder = {
  readonly instance: string | null
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly serial: string
  readonly sinceMs: number
}

/** The holder of a live channel whose process is another than `instance`, pinged and found answering; null: there is none. */
export type FindOtherHolder = (node: NodeId, instance: string | null) => Promise<LiveHolder | null>

/** Whether this process has a channel of the node open. */
export type HasChannel = (node: NodeId, instance: string) => boolean
