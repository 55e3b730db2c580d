// A vCluster: the logical group a node is assigned to. It never touches a certificate.

import type { Overlay } from './overlay.ts'
import type { Policy } from './policy.ts'

/** In a filter: nodes that are in no vCluster. None can have this name. */
export const noVCluster = 'none'

export const peerings = ['mesh', 'isolated'] as const

export type VCluster = {
  readonly name: string
  readonly description: string
  /** Counts its changes; goes on over a deletion, so that no revision ever means two things. */
  readonly revision: number
  readonly policy: Policy
  readonly overlay: Overlay
  /** `mesh`: its nodes are WireGuard peers of every node that is not isolated. `isolated`: of each other only. */
  readonly peering: (typeof peerings)[number]
  /** It takes no more nodes: about to be deleted, or an operator wants it so. */
  readonly closed: boolean
  readonly createdAtMs: number
  readonly createdBy: string
  /** Deleted: a tombstone, which a new one of the same name takes over. */
  readonly deletedAtMs: number | null
}
