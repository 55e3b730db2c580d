// Who has a channel of this node open just now, as the decision about two holders of one identity needs to know it.

import type { NodeId } from '#domain/node.ts'
import type { AgentEvidence } from '#wire/agent-evidence.ts'

export type LiveHolder = {
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly serial: string
}

/**
 * The holder of a live channel whose process is another than `instance`, pinged and found answering; null: there is none.
 * Where `instance` is null, any process that names its own is another.
 */
export type FindOtherHolder = (node: NodeId, instance: string | null) => Promise<LiveHolder | null>

/**
 * Waits for a node whose channel ended a moment ago, or whose plane has just started. True: there was something to wait
 * for, and whoever asks has to look again.
 */
export type AwaitReturn = (node: NodeId) => Promise<boolean>

/** Whether this process has a channel of the node open. */
export type HasChannel = (node: NodeId, instance: string) => boolean
