// One identity that is refused again and again. Only callers that have proved something count: a name alone is no
// proof, or any caller could raise an alert about another's node.

import { wantedAlert, type WantedAlert } from './alert-kinds.ts'
import { boundedText } from '#domain/core/change.ts'
import { hardwareWords, isBlank } from '#domain/core/hardware-identity.ts'
import type { HardwareIdentity, Node, NodeId } from '#domain/core/node.ts'
import type { Principal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { isRefusalCode, refusals, type RefusalCode } from '#domain/core/refusal-table.ts'

export const failureWindowMs = 10 * 60_000
export const failuresToAlert = 5
/** Longer than the window, so that an identity that fails on and off is one alert and not many. */
export const quietToResolveMs = 30 * 60_000

export type FailedIdentity = {
  readonly node: NodeId
  /** `key`: of one of its certificates. `token`: one that was made for it. `hardware`: its addresses, which others may know. */
  readonly provenBy: 'key' | 'token' | 'hardware'
}

/** What an operator decided, and what has an alert of its own. Faults of the plane are not counted either. */
const notCounted: readonly RefusalCode[] = [
  'RATE_LIMITED',
  'NODE_REVOKED',
  'NODE_QUARANTINED',
  'APPROVAL_REQUIRED',
  'RECOVERY_BUDGET_SPENT',
  'RECOVERY_DENIED',
  'REJOIN_REQUIRED',
]

export const failedIdentity = (refusal: Refusal, principal: Principal | null): FailedIdentity | null => {
  if (isFaultOfPlane(refusal.code) || notCounted.includes(refusal.code)) return null
  if (principal !== null && principal.kind === 'node') return { node: principal.id, provenBy: 'key' }
  const { node = null, actor = 'anonymous' } = refusal.about ?? {}
  if (node === null) return null
  if (actor === `node:${node}`) return { node, provenBy: 'key' }
  if (actor.startsWith('token:')) return { node, provenBy: 'token' }
  return actor === 'hardware' ? { node, provenBy: 'hardware' } : null
}

/** The hardware that was shown, where it is no node's: as it is counted. Null: another refusal. */
export const unknownHardware = ({ code, about }: Refusal): HardwareIdentity | null => {
  if (code !== 'NODE_NOT_ENROLLED' || about?.hardware === undefined || isBlank(about.hardware)) return null
  return about.hardware
}

/** `machines`: how many have failed that often; `atLeast`: there may have been more than are counted. */
export const unknownHardwareAlert = (
  domain: string,
  failed: {
    readonly machines: number
    readonly atLeast: boolean
    readonly last: HardwareIdentity
    readonly source: string
  },
  sinceMs: number | null,
): WantedAlert => {
  const { machines, atLeast, last, source } = failed
  const minutes = failureWindowMs / 60_000
  const counted = machines === 1 ? 'a machine' : `${machines}${atLeast ? ' or more' : ''} machines`
  const hardware = boundedText(hardwareWords({ ...last, macs: last.macs.slice(0, mostMacs) }), 256)
  const evidence = { machines: counted, times: failuresToAlert, minutes, hardware, source }
  return wantedAlert('unknown_hardware', domain, evidence, { sinceMs })
}

const mostMacs = 4

/** The code of an entry that a replica of a later release wrote may be in no table here: then it is counted. */
const isFaultOfPlane = (code: string): boolean => isRefusalCode(code) && refusals[code].fault === 'plane'

/** The failures of one identity that still count, this one included; never more than it takes. */
export const withFailure = (before: readonly number[], nowMs: number): readonly number[] =>
  [...before, nowMs].filter((atMs) => nowMs - atMs < failureWindowMs).slice(-failuresToAlert)

export type RepeatedFailure = {
  readonly identity: FailedIdentity
  readonly code: RefusalCode
  readonly source: string
}

export const repeatedFailures = (node: Node, profile: Profile, failure: RepeatedFailure): WantedAlert | null => {
  if (node.membership.kind === 'revoked') return null
  // Where a profile asks for more than hardware addresses, a caller that knows them has proved nothing.
  const admittedByHardware = profile.join.allOf.every((method) => method === 'hardware')
  if (failure.identity.provenBy === 'hardware' && !admittedByHardware) return null
  const { code, source } = failure
  const minutes = failureWindowMs / 60_000
  return wantedAlert('repeated_failures', node.id, { times: failuresToAlert, minutes, code, source })
}
