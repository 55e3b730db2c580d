// Who still needs a name that the plane served: nodes that have not acknowledged the endpoint set without it, machines whose image
// names it, and what was handed out with it and not used yet.

import { slotsOf } from '#domain/core/certificate.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { tokenStatus, type Token } from '#domain/core/token.ts'

export type NodeAtName = {
  readonly node: Node
  readonly profile: Profile | null
  /** The revision of the endpoint set that its agent reported last and could write down; null: none. */
  readonly endpointRevision: number | null
  /** Of its agent; null: not known. */
  readonly agentVersion: string | null
  readonly recoverable: boolean
}

/** `image`: it joins by its hardware each time it starts, with the join string in its image. */
export type WhyNeeded = 'unacknowledged' | 'image'

/** Null: it has no identity, or knows where the plane is now. */
export const whyNeeded = (
  facts: Pick<NodeAtName, 'node' | 'profile' | 'endpointRevision'>,
  revision: number,
): WhyNeeded | null => {
  const { node, profile, endpointRevision } = facts
  if (node.membership.kind === 'revoked' || slotsOf(node) === null) return null
  if (endpointRevision !== revision) return 'unacknowledged'
  return profile !== null && !profile.join.allOf.includes('token') ? 'image' : null
}

export type NameNeeds = {
  readonly nodes: readonly { readonly facts: NodeAtName; readonly why: WhyNeeded }[]
  /** Unused, with this name in their join strings. */
  readonly tokens: readonly Token[]
  /** Nodes with an unused repair bundle from before the plane had its present name. */
  readonly bundles: readonly Node[]
  /** Handed out without a secret. Whether a machine still uses one cannot be known. */
  readonly joinStrings: number
}

/** Whether a token lets in a machine by this name. One made before 0.4.0 has the name that the plane had then. */
export const isTokenAt = (token: Token, name: string, renamedAtMs: number, nowMs: number): boolean => {
  const good = ['unused', 'bound'].includes(tokenStatus(token, nowMs))
  return good && (token.serverName === null ? token.createdAtMs < renamedAtMs : token.serverName === name)
}

export const hasBundleBefore = ({ repair }: Node, renamedAtMs: number, nowMs: number): boolean =>
  repair !== null && repair.usedBy === null && repair.expiresAtMs > nowMs && repair.issuedAtMs < renamedAtMs
