// Work that somebody has placed on a node: as much of it as it takes to give it back. How many run is counted on the node,
// so that whoever takes the node away and whoever places work on it cannot miss each other.

import type { NodeId } from '#domain/core/node.ts'

export type Allocation = {
  readonly id: string
  readonly vcluster: string
  readonly owner: string
  readonly node: NodeId
  readonly createdAtMs: number
  readonly createdBy: string
  readonly state: AllocationState
}

export type AllocationState =
  | { readonly kind: 'running' }
  /** The node drains: its owner is asked to move it. */
  | { readonly kind: 'releasing'; readonly atMs: number; readonly why: string }
  /** `forced`: taken from its owner, who hears of it from the journal. */
  | {
      readonly kind: 'released'
      readonly atMs: number
      readonly why: string
      readonly by: string
      readonly forced: boolean
    }

export const allocationStates = [
  'running',
  'releasing',
  'released',
] as const satisfies readonly AllocationState['kind'][]

/** So many on one node: a quarantine releases all of them in one transaction. */
export const mostAllocations = 256

/** How long a released one stays on record. */
export const releasedKeptMs = 30 * 24 * 3_600_000
