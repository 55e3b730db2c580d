// What an action would do, computed before it is done. Whoever applies a plan gets what was shown, or hears what changed.

import type { IssuerId, NodeId } from '#domain/core/node.ts'

export type PlanAction =
  | { readonly kind: 'revoke-nodes'; readonly nodes: readonly NodeId[]; readonly reason: string }
  | { readonly kind: 'decommission-nodes'; readonly nodes: readonly NodeId[]; readonly force: boolean }
  | { readonly kind: 'revoke-token'; readonly token: string }
  | { readonly kind: 'delete-vcluster'; readonly vcluster: string }
  | { readonly kind: 'change-profile'; readonly profile: string; readonly set: Readonly<Record<string, unknown>> }
  /** `compromised`: the issuer to be dropped, with all its leaves; null: an ordinary rotation. */
  | { readonly kind: 'rotate-ca'; readonly compromised: IssuerId | null; readonly reason: string }

export const planActions = [
  'revoke-nodes',
  'decommission-nodes',
  'revoke-token',
  'delete-vcluster',
  'change-profile',
  'rotate-ca',
] as const satisfies readonly PlanAction['kind'][]

/** One line: whom it concerns, what becomes of it, and the facts that follows from. Two are the same if all of it is. */
export type PlanEffect = {
  /** `node gpu-001`, `token 01J...`, `vcluster blue`, `profile gpu-cloud`, `authority ab12...`. */
  readonly subject: string
  readonly effect: string
  /** When access is lost; null: it is not. */
  readonly loses: 'at once' | 'at expiry' | null
  /** It cannot come back by itself: what a person would have to do. */
  readonly unrecoverable: string | null
  /** What the line was read from, in words: `active`, `3 allocations`, `assigned to blue`. */
  readonly facts: readonly string[]
}

export type Plan = {
  readonly id: string
  readonly action: PlanAction
  readonly effects: readonly PlanEffect[]
  readonly by: string
  readonly computedAtMs: number
  readonly expiresAtMs: number
  readonly applied: { readonly by: string; readonly atMs: number } | null
}

export const planLifeMs = 3_600_000
/** Nodes one plan may name. */
export const mostPlanned = 500
