// A machine that enrolls again while its node is active proves the key of its certificate (rulings 3 and 23): its certificate cannot be
// used, and its key can. Only the newest generation counts. A caller with an earlier one holds a copy.

import type { KeyBan } from '#domain/core/certificate.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { hasCondition } from '#domain/core/conditions.ts'
import type { Node } from '#domain/core/node.ts'
import { oldestCounter, type PresentedCounter } from '#domain/core/recovery-credential.ts'
import type { DuplicateSign } from '#domain/identity/duplicate.ts'
import { otherOwners, type KeyClaim } from '#domain/identity/key-claim.ts'

/** A key that the caller has proven to hold, for this node and this request. Whose key it is has not been decided. */
export type IdentityProof = {
  readonly spki: string
  readonly counter: PresentedCounter
  readonly ban: Row<KeyBan> | null
  readonly claim: Row<KeyClaim> | null
}

export type ProofVerdict =
  /** It holds the current or the pending certificate's key and the newest counter. */
  | 'newest'
  | Extract<DuplicateSign, 'replaced-key' | 'old-counter'>
  /** Not a key of this node, or one that does not tell this node from others. */
  | 'nothing'

export const judgeIdentityProof = (node: Node, { spki, counter, ban, claim }: IdentityProof): ProofVerdict => {
  const slots = slotsOf(node)
  // A key that was banned, or that another node has as well, is in other hands.
  if (slots === null || ban !== null || otherOwners(claim, node.id).length > 0) return 'nothing'
  // The counter came with the certificate; an unused successor may never have arrived.
  if (spki === slots.pending?.spki) return counter.counter < node.counter ? 'old-counter' : 'newest'
  if (spki === slots.current.spki) return counter.counter < oldestCounter(node) ? 'old-counter' : 'newest'
  const isEarlier =
    spki === slots.retired?.slot.spki ||
    (claim?.value.holders ?? []).some((holder) => holder.node === node.id && holder.use === 'tls')
  // A node that could not keep its newest certificate comes back with the one before.
  return isEarlier && !hasCondition(node, 'not_persisted') ? 'replaced-key' : 'nothing'
}
