// What the store has of every CA certificate of the domain. Intermediates stay until their last leaf has expired, so a
// restart with memory keys invalidates nothing.

import type { IssuerId, Node, NodeId } from '#domain/core/node.ts'
import { approvalComplete } from '#domain/core/approval.ts'
import { type Denial, everySlot, slotsOf } from '#domain/core/certificate.ts'
import type { Profile } from '#domain/core/profile.ts'
import { recoverabilityOf, isToRecover } from '#domain/core/recoverability.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

/** Those of the runtime: what nodes and the plane's own listener live by. */
export const isOfRuntime = ({ role }: Pick<IssuerRow, 'role'>): boolean =>
  role === 'root' || role === 'domain-ca' || role === 'issuing'

export type IssuerRow = {
  readonly id: IssuerId
  /**
   * `recovery`: a root of its own, for the recovery listener only; no leaf of the runtime hangs under it. `programs-root`: another,
   * with `programs-issuing` below it, for the leaves of programs; no agent trusts it for a plane. `workers-issuing`: below the
   * root of the domain, for the certificates of workers; nothing that it signs is a node's. `outside-root` and `outside-issuing`: of an
   * outside issuer, whose leaves some nodes have; no agent trusts them for a plane. `renewal-root`: signs the one certificate that the
   * plane asks a step-ca for renewals with, and nothing else.
   */
  readonly role:
    | 'root'
    | 'domain-ca'
    | 'issuing'
    | 'recovery'
    | 'programs-root'
    | 'programs-issuing'
    | 'workers-issuing'
    | 'outside-root'
    | 'outside-issuing'
    | 'renewal-root'
  /** DER, base64. */
  readonly der: string
  /** The id of the CA that signed it; its own for a root. */
  readonly parent: IssuerId
  /**
   * Where the key is. `pkcs11`: in a token that does not let it out. `offline`: not here, as is that of every authority of an outside
   * issuer, and of a root that no plane ever had.
   */
  readonly custody: 'file' | 'memory' | 'offline' | 'pkcs11' | 'transit'
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** An issuing CA that no longer signs. */
  readonly retiredAtMs: number | null
  /** When it was withdrawn because its key may be compromised: nothing it has signed, or will, is accepted. */
  readonly compromisedAtMs: number | null
}

/** Whether the domain has its key for good, here or in a token: every replica signs with it. */
export const isKept = ({ custody }: Pick<IssuerRow, 'custody'>): boolean =>
  custody !== 'memory' && custody !== 'offline'

// The key of an intermediate may be compromised: nothing it has signed is accepted any more, nor anything below it. Its
// nodes have done nothing wrong and come back through recovery, which has its own root.

/** Null: it can be withdrawn. */
export const withdrawalBarred = (issuer: IssuerRow | null): Refusal | null => {
  if (issuer === null) return refuse('ISSUER_NOT_FOUND')
  switch (issuer.role) {
    case 'root':
      return refuse('ISSUER_NOT_WITHDRAWABLE', 'it is the root: every machine trusts it, and no authority is above it')
    case 'recovery':
      return refuse('ISSUER_NOT_WITHDRAWABLE', 'it is the root of recovery, which machines come back by')
    case 'programs-root':
      return refuse(
        'ISSUER_NOT_WITHDRAWABLE',
        'it is the root of programs: no authority is above it, so those who verify programs have to stop trusting it themselves',
      )
    case 'renewal-root':
      return refuse('ISSUER_NOT_WITHDRAWABLE', 'no node has a certificate below it')
    case 'domain-ca':
    case 'issuing':
    case 'programs-issuing':
    case 'workers-issuing':
    case 'outside-root':
    case 'outside-issuing':
      return null
  }
}

/** The authority and everything below it, but for what is withdrawn already. */
export const withdrawnWith = (issuer: IssuerId, all: readonly IssuerRow[]): readonly IssuerRow[] => {
  const hit = new Set([issuer])
  // Parents come in any order; a path has a handful of authorities, so this ends soon.
  for (let before = 0; before !== hit.size;) {
    before = hit.size
    for (const { id, parent } of all) if (hit.has(parent)) hit.add(id)
  }
  return all.filter(({ id, compromisedAtMs }) => hit.has(id) && compromisedAtMs === null)
}

export const withdrawn = (issuer: IssuerRow, nowMs: number): IssuerRow => ({
  ...issuer,
  retiredAtMs: issuer.retiredAtMs ?? nowMs,
  compromisedAtMs: nowMs,
})

/** For as long as a certificate signed with its key, by the plane or by a thief, could be valid. */
export const denialOfIssuer = (issuer: IssuerRow, toleranceMs: number, why: string, nowMs: number): Denial => ({
  kind: 'issuer',
  issuer: issuer.id,
  atMs: nowMs,
  untilMs: issuer.notAfterMs + toleranceMs,
  why,
  reason: 'ca-compromise',
})

export type WithdrawalEffect = {
  readonly node: NodeId
  /** `joins`: by its hardware. `approval`: people decide. `unproven`: it has something to come back by, never tried. */
  readonly comesBack: 'by itself' | 'joins' | 'approval' | 'unproven' | 'not'
  readonly why: string
}

/** What a withdrawal would mean for one node; null: nothing. `rehearsedAtMs`: as `recoverabilityOf` takes it. */
export const effectOfWithdrawal = (
  node: Node,
  profile: Profile,
  issuers: readonly IssuerId[],
  rehearsedAtMs: number | null,
  nowMs: number,
): WithdrawalEffect | null => {
  const slots = slotsOf(node)
  if (slots === null || !everySlot(slots).some(({ issuer }) => issuers.includes(issuer))) return null
  const { id, recovery } = node
  const { recoverable, why } = recoverabilityOf(node, profile, rehearsedAtMs, nowMs)
  if (node.membership.kind === 'quarantined') return { node: id, comesBack: 'not', why }
  if (!isToRecover(node, profile)) return { node: id, comesBack: 'joins', why }
  if (profile.recovery.mode === 'deny' || recovery === null || recovery.denied !== null)
    return { node: id, comesBack: 'not', why }
  const decidedByPeople =
    profile.recovery.mode === 'approve' || (node.membership.kind === 'inactive' && !approvalComplete(node, profile))
  if (decidedByPeople) return { node: id, comesBack: 'approval', why: 'its profile lets people decide' }
  return { node: id, comesBack: recoverable ? 'by itself' : 'unproven', why }
}
