// What an agent does about a refusal, by its retry class, in each situation. A class that has no row does not compile.

import type { RehearsalStep } from '#domain/core/node.ts'
import type { RetryClass } from '#domain/core/refusal-table.ts'

/** What a refused enrollment or recovery means for the next try. */
export type Prospect =
  /** Soon: nothing is wrong with this node. */
  | 'again'
  /** The identity is taken by a node that is still active; it becomes free when the grace of that node ends. */
  | 'when-free'
  /** An operator has to do something first; asked again now and then. */
  | 'after-operator'
  /** With a new key: the one in the request is of no use. */
  | 'new-key'
  /** Without the repair bundle: what the node had before it came is left. */
  | 'without-bundle'
  /** This plane knows no recovery. */
  | 'elsewhere'
  | 'never'

/**
 * What a refused renewal or channel means for the identity in use. `slow`: only an operator can change it, so retries are
 * slow. `unknown-certificate`: the previous certificate may still be valid.
 */
export type RefusedUse = 'soon' | 'slow' | 'unknown-certificate' | 'rejoin' | 'revoked'

export type Reaction = {
  readonly enroll: Exclude<Prospect, 'without-bundle' | 'elsewhere'>
  readonly recover: Exclude<Prospect, 'when-free'>
  readonly use: RefusedUse
  /** The step of a rehearsal that failed. */
  readonly rehearsal: RehearsalStep
}

const after = (
  enroll: Reaction['enroll'],
  recover: Reaction['recover'],
  use: RefusedUse,
  rehearsal: RehearsalStep,
): Reaction => ({ enroll, recover, use, rehearsal })

export const afterRefusal: Readonly<Record<RetryClass, Reaction>> = {
  later: after('again', 'again', 'soon', 'endpoint'),
  'issuance-stopped': after('again', 'again', 'soon', 'proof'),
  'new-challenge': after('again', 'again', 'soon', 'proof'),
  'when-free': after('when-free', 'after-operator', 'soon', 'proof'),
  'new-key': after('new-key', 'new-key', 'soon', 'proof'),
  'new-request': after('never', 'new-key', 'soon', 'proof'),
  // Also where it has used up the token (WG_KEY_IN_USE): the next one comes with another key.
  'wrong-request': after('never', 'after-operator', 'soon', 'proof'),
  'new-token': after('never', 'after-operator', 'soon', 'proof'),
  'no-such-call': after('never', 'elsewhere', 'soon', 'endpoint'),
  'wrong-address': after('after-operator', 'after-operator', 'soon', 'proof'),
  'drop-bundle': after('after-operator', 'without-bundle', 'soon', 'proof'),
  revoked: after('never', 'never', 'revoked', 'proof'),
  'certificate-expired': after('after-operator', 'after-operator', 'rejoin', 'proof'),
  'certificate-denied': after('after-operator', 'after-operator', 'rejoin', 'proof'),
  'certificate-unknown': after('after-operator', 'after-operator', 'unknown-certificate', 'proof'),
  // Also where there is a newer certificate that this node does not have: recovery says whose it is.
  rejoin: after('after-operator', 'after-operator', 'rejoin', 'proof'),
  'identity-blocked': after('after-operator', 'after-operator', 'slow', 'proof'),
  'identity-unproven': after('after-operator', 'after-operator', 'soon', 'proof'),
  'second-holder': after('after-operator', 'after-operator', 'slow', 'counter'),
  approval: after('after-operator', 'after-operator', 'slow', 'budget'),
  'recovery-limit': after('after-operator', 'after-operator', 'soon', 'budget'),
  'no-recovery': after('after-operator', 'after-operator', 'soon', 'proof'),
  operator: after('after-operator', 'after-operator', 'soon', 'proof'),
  'unknown-later': after('again', 'again', 'soon', 'proof'),
  'unknown-address': after('after-operator', 'elsewhere', 'soon', 'proof'),
  unknown: after('after-operator', 'after-operator', 'soon', 'proof'),
}
