// Which changes are cut-offs. They are committed when nothing else can be, on a disk that is full but for the reserve of the
// store. Where they cannot be committed at all they are in force at the replica that was asked, until they are.

import type { RevocationReason } from './certificate.ts'
import type { Change, Write, Attribution } from './change.ts'
import type { EntryType } from './journal-entry.ts'
import type { IssuerId, NodeId } from './node.ts'

const cutOffEntries: ReadonlySet<EntryType> = new Set<EntryType>([
  'host.revoked',
  'node.quarantined',
  'issuance.halted',
  'ca.compromised',
  'signer.withdrawn',
  'worker.revoked',
  // A certificate of a withdrawn authority is not presented any more, so a withdrawal needs a new server certificate.
  'server_certificate.issued',
])

/** A revocation, a quarantine, a halt of issuance, the withdrawal of a task signer, the withdrawal of an authority with the server certificate it makes necessary, or the progress of a receipt of one. */
export const isCutOff = ({ entries, writes }: Pick<Change, 'entries' | 'writes'>): boolean =>
  entries.some(({ type }) => cutOffEntries.has(type)) || (writes.length > 0 && writes.every(isReceipt))

const isReceipt = ({ put }: Write): boolean => put === 'receipt'

/** What an operator ordered, in a form that can be repeated until it is committed. */
export type CutOffOrder = { readonly by: Attribution; readonly reason: string } & (
  | { readonly kind: 'quarantine'; readonly node: NodeId }
  /** `reasonCode`: left out by releases before 0.4. */
  | { readonly kind: 'revoke'; readonly node: NodeId; readonly reasonCode?: RevocationReason }
  | { readonly kind: 'revoke-worker'; readonly worker: string }
  | { readonly kind: 'halt'; readonly renewals: boolean }
  | { readonly kind: 'withdraw'; readonly issuer: IssuerId }
)

/** Of orders with the same key the later one takes the place of the earlier. */
export const cutOffKey = (order: CutOffOrder): string => {
  switch (order.kind) {
    case 'quarantine':
    case 'revoke':
      return `${order.kind}/${order.node}`
    case 'revoke-worker':
      return `revoke-worker/${order.worker}`
    case 'halt':
      return 'halt'
    case 'withdraw':
      return `withdraw/${order.issuer}`
  }
}

/** The same order once more: a caller that tries again. */
export const isSameOrder = (one: CutOffOrder, other: CutOffOrder): boolean =>
  cutOffKey(one) === cutOffKey(other) &&
  one.reason === other.reason &&
  one.by.actor === other.by.actor &&
  reasonCodeOf(one) === reasonCodeOf(other) &&
  (one.kind === 'halt' && one.renewals) === (other.kind === 'halt' && other.renewals)

export const reasonCodeOf = (order: CutOffOrder): RevocationReason =>
  (order.kind === 'revoke' ? order.reasonCode : undefined) ?? 'unspecified'

/** The number of entries that are read to know whether an order was undone. */
export const aboutOrder = (order: CutOffOrder): readonly EntryType[] => {
  switch (order.kind) {
    case 'quarantine':
      return [...cutsNode, 'node.released', ...startsAgain]
    case 'revoke':
      return ['host.revoked', ...startsAgain]
    case 'halt':
      return ['issuance.resumed']
    // Its pod never comes back: it cannot be undone.
    case 'revoke-worker':
    case 'withdraw':
      return []
  }
}

const cutsNode: readonly EntryType[] = ['node.quarantined', 'host.revoked']
const startsAgain: readonly EntryType[] = ['node.registered', 'host.enrolled', 'node.recovered']

/**
 * Whether operators have undone a pending order, given the entries since then, oldest first. That a node enrolled or
 * recovered counts only after it was cut off by another replica: a stolen machine can do both at a replica that does not know of
 * the order.
 */
export const isOverruled = (order: CutOffOrder, since: readonly EntryType[]): boolean => {
  const known = aboutOrder(order)
  let cut = false
  for (const type of since.filter((one) => known.includes(one))) {
    if (cutsNode.includes(type)) cut = true
    else if (cut || !startsAgain.includes(type)) return true
  }
  return false
}

export const cutOffWords = (order: CutOffOrder): string => {
  switch (order.kind) {
    case 'quarantine':
      return `the quarantine of ${order.node}`
    case 'revoke':
      return `the revocation of ${order.node}`
    case 'revoke-worker':
      return `the revocation of the worker ${order.worker}`
    case 'halt':
      return 'the halt of issuance'
    case 'withdraw':
      return `the withdrawal of the authority ${order.issuer}`
  }
}

/** What nodes that are in get during a halt that lets renewals go on. */
const renewals: ReadonlySet<EntryType> = new Set<EntryType>(['node.renewed', 'program.renewed', 'worker.renewed'])

/** A certificate for it, or a task of it that goes further than to its end. */
const isForWorker = (write: Write, worker: string): boolean => {
  if (write.put === 'certificate') return write.value.subject.kind === 'worker' && write.value.subject.worker === worker
  if (write.put !== 'task') return false
  const { queuedBy, state } = write.value
  return (
    queuedBy.kind === 'worker' && queuedBy.id === worker && (state.kind === 'queued' || state.kind === 'dispatched')
  )
}

/** Whether an order that is not committed yet forbids this plane to commit that: a certificate for what was cut off. */
export const forbids = (order: CutOffOrder, change: Pick<Change, 'entries' | 'writes'>): boolean => {
  if (isCutOff(change)) return false
  const issued = change.writes.flatMap((write) =>
    write.put === 'certificate' && write.value.subject.kind !== 'server'
      ? [{ node: 'node' in write.value.subject ? write.value.subject.node : null, issuer: write.value.issuer }]
      : [],
  )
  switch (order.kind) {
    case 'revoke-worker':
      return change.writes.some((write) => isForWorker(write, order.worker))
    case 'quarantine':
    case 'revoke':
      return issued.some(({ node }) => node === order.node)
    case 'withdraw':
      return issued.some(({ issuer }) => issuer === order.issuer)
    case 'halt':
      return issued.length > 0 && !(order.renewals && change.entries.some(({ type }) => renewals.has(type)))
  }
}
