// The deny-list, mirrored in memory: loaded before the first connection is accepted, fed by every commit after that.

import { certificateDenialKey, denialKey, epochDenialKey, type CertificateRecord } from '#domain/certificate.ts'
import type { NodeId } from '#domain/node.ts'
import type { Feed } from '#plane/feed/feed.ts'
import type { Store } from '#plane/store/store.ts'

export type DenyList = {
  denies(record: CertificateRecord): boolean
  deniesIdentity(node: NodeId, epoch: number, certificate: Pick<CertificateRecord, 'issuer' | 'serial'>): boolean
  size(): number
  /** Forgets what can deny nothing any more. */
  prune(nowMs: number): void
}

export const openDenyList = async (store: Pick<Store, 'denials'>, feed: Feed): Promise<DenyList> => {
  const untilMs = new Map<string, number>()
  const add = (key: string, until: number): void => void untilMs.set(key, Math.max(until, untilMs.get(key) ?? 0))

  // Subscribed before loading: what is committed in between is then seen twice, and never missed.
  feed.subscribe(({ writes }) => {
    for (const write of writes) if (write.put === 'denial') add(denialKey(write.value), write.value.untilMs)
  })
  for (const denial of await store.denials()) add(denialKey(denial), denial.untilMs)

  const deniesCertificate = ({ issuer, serial }: Pick<CertificateRecord, 'issuer' | 'serial'>): boolean =>
    untilMs.has(certificateDenialKey(issuer, serial))
  const deniesEpoch = (node: NodeId, epoch: number): boolean => untilMs.has(epochDenialKey(node, epoch))

  return {
    denies: (record) =>
      deniesCertificate(record) ||
      (record.subject.kind === 'node' && deniesEpoch(record.subject.node, record.subject.epoch)),
    deniesIdentity: (node, epoch, certificate) => deniesCertificate(certificate) || deniesEpoch(node, epoch),
    size: () => untilMs.size,
    prune(nowMs) {
      for (const [key, until] of untilMs) if (until <= nowMs) untilMs.delete(key)
    },
  }
}
