// Who has a channel of this node open just now, on whichever replica, as the decision about two holders of one identity
// needs to know it. `unknown`: a replica that may hold it does not answer, and nothing may be concluded.

import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'

export type LiveHolder = {
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly serial: string
}

/**
 * The holder of a live channel whose process is another than `instance`, pinged and found answering; null: there is none.
 * Where `instance` is null, any process that names its own is another.
 */
export type FindOtherHolder = (node: NodeId, instance: string | null) => Promise<LiveHolder | null | 'unknown'>

/**
 * Waits for a node whose channel ended a moment ago, or whose plane has just started. `waited`: there was something to
 * wait for, and whoever asks has to look again.
 */
export type AwaitReturn = (node: NodeId) => Promise<'waited' | 'nothing' | 'unknown'>

/** Whether this process has a channel of the node open. */
export type HasChannel = (node: NodeId, instance: string) => Promise<boolean>

export type LastHolder = {
  /** True when this process is known to have moved on to the node's current certificate. */
  isHolder(node: Node, instance: string): Promise<boolean | 'unknown'>
}

/** Never admission: within the time of a lease the other replica answers, or is given up. */
export const holderUnknown = (node: NodeId): Refusal => ({
  ...refuse('UNAVAILABLE', 'the replica of the plane that holds the channel of this node does not answer'),
  retryAfterMs: 3000,
  about: { node },
})
