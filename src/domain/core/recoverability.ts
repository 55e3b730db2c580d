// Would this node recover without an operator? Proven only by a recent rehearsal that passed in its current epoch.

import type { Node } from './node.ts'
import type { Profile } from './profile.ts'

export type Recoverability = { readonly recoverable: boolean; readonly why: string }

/** `rehearsedAtMs`: when it last rehearsed, with any result. */
export const recoverabilityOf = (
  node: Node,
  profile: Profile,
  rehearsedAtMs: number | null,
  nowMs: number,
): Recoverability => {
  const why = obstacle(node, profile, rehearsedAtMs, nowMs)
  return why === null ? { recoverable: true, why: 'rehearsed' } : { recoverable: false, why }
}

/**
 * Whether it counts at all: a node without a certificate has nothing to recover, and one that joins by its hardware comes
 * back that way.
 */
export const isToRecover = ({ membership }: Node, profile: Profile): boolean =>
  membership.kind !== 'registered' && membership.kind !== 'revoked' && !joinsAgain(profile)

const joinsAgain = ({ recovery, join }: Profile): boolean =>
  recovery.mode === 'deny' && join.allOf.every((method) => method === 'hardware')

/** After a recovery or a release: what was proven before was proven with other keys. */
const notInThisEpoch = 'not rehearsed in its new epoch yet (its agent does so within seconds of connecting)'

const obstacle = (node: Node, profile: Profile, rehearsedAtMs: number | null, nowMs: number): string | null => {
  const { membership, recovery, rehearsal } = node
  if (membership.kind === 'revoked' || membership.kind === 'quarantined') return membership.kind
  if (joinsAgain(profile)) return 'n/a (rejoins by hardware identity)'
  if (profile.recovery.mode === 'deny') return 'recovery denied by profile'
  if (recovery === null) return 'nothing registered'
  if (recovery.denied !== null) return 'recovery denied by an operator'
  if (rehearsal === null) return 'never rehearsed'
  if (rehearsal.epoch !== node.epoch) return notInThisEpoch
  if (rehearsal.outcome === 'failed') return `failed at ${rehearsal.step}: ${rehearsal.why}`
  const lastMs = Math.max(rehearsal.sinceMs, rehearsedAtMs ?? 0)
  return nowMs - lastMs > 2 * profile.recovery.rehearseEveryMs ? 'stale' : null
}
