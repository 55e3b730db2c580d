// The deny-list, mirrored in memory: loaded before the first connection is accepted, fed by every commit after that.

import { certificateDenialKey, denialKey, epochDenialKey, type CertificateRecord } from '#domain/certificate.ts'
import type { Feed } from '#plane/feed/feed.ts'
import type { Store } from '#plane/store/store.ts'

export type DenyList = {
  denies(record: CertificateRecord): boolean
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

  return {
    denies: ({ subject, issuer, serial }) =>
      untilMs.has(certificateDenialKey(issuer, serial)) ||
      (subject.kind === 'node' && untilMs.has(epochDenialKey(subject.node, subject.epoch))),
    size: () => untilMs.size,
    prune(nowMs) {
      for (const [key, until] of untilMs) if (until <= nowMs) untilMs.delete(key)
    },
  }
}
