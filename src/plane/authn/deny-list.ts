// The deny-list, mirrored in memory: loaded before the first connection is accepted, fed by every commit after that.

import {
  certificateDenialKey,
  denialKey,
  epochDenialKey,
  issuerDenialKey,
  type CertificateRow,
  type Denial,
} from '#domain/core/certificate.ts'
import { denialOfIssuer } from '#domain/ca/issuer.ts'
import type { IssuerId, NodeId } from '#domain/core/node.ts'
import { keyBanned } from '#domain/identity/presented-certificate.ts'
import type { NodePrincipal, WorkerPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'

type DeniablePrincipal = Pick<NodePrincipal, 'id' | 'epoch' | 'credential'> | Pick<WorkerPrincipal, 'credential'>

export type DenyList = {
  denies(row: CertificateRow): boolean
  /** Why an authenticated caller is denied now; null: nothing of it is denied. */
  refusalOf(principal: DeniablePrincipal): Refusal | null
  /** The authorities whose every certificate is denied, the latest first. */
  withdrawnIssuers(): readonly IssuerId[]
  size(): number
  /** Takes this denial back where it is not in the store: it was made before its commit, which came to nothing. */
  reload(denial: Denial): Promise<void>
  /** Forgets expired denials. `livedMs`: a time that is never ahead of the real one. */
  prune(livedMs: number): void
}

export const openDenyList = async (
  store: Pick<Store, 'denials' | 'issuers' | 'get'>,
  feed: Feed,
): Promise<DenyList> => {
  const untilMs = new Map<string, number>()
  /** Since the start: what was banned before is read from the store with every request, and these may come after that. */
  const banned = new Set<string>()
  let additions = 0
  let withdrawn: readonly Extract<Denial, { kind: 'issuer' }>[] = []
  const add = (denial: Denial): void => {
    const key = denialKey(denial)
    additions++
    untilMs.set(key, Math.max(denial.untilMs, untilMs.get(key) ?? 0))
    if (denial.kind !== 'issuer') return
    const others = withdrawn.filter(({ issuer }) => issuer !== denial.issuer)
    withdrawn = [...others, denial].sort((one, other) => other.atMs - one.atMs)
  }

  // Subscribed before loading: what is committed in between is then seen twice, and never missed.
  feed.subscribe('deny-list', ({ writes }) => {
    for (const write of writes) {
      if (write.put === 'denial') add(write.value)
      if (write.put === 'key-ban') banned.add(write.value.spki)
    }
  })
  for (const denial of await store.denials()) add(denial)
  // Its own row says so too: a withdrawn authority stays withdrawn without its denial.
  for (const { value } of await store.issuers()) {
    const { id, compromisedAtMs } = value
    if (compromisedAtMs === null || untilMs.has(issuerDenialKey(id))) continue
    add(denialOfIssuer(value, 0, 'withdrawn', compromisedAtMs))
  }

  const deniesCertificate = ({ issuer, serial }: Pick<CertificateRow, 'issuer' | 'serial'>): boolean =>
    untilMs.has(certificateDenialKey(issuer, serial))
  const deniesEpoch = (node: NodeId, epoch: number): boolean => untilMs.has(epochDenialKey(node, epoch))

  return {
    denies: (row) =>
      deniesCertificate(row) || (row.subject.kind === 'node' && deniesEpoch(row.subject.node, row.subject.epoch)),
    refusalOf(principal) {
      const { credential } = principal
      const epochDenied = 'epoch' in principal && deniesEpoch(principal.id, principal.epoch)
      if (deniesCertificate(credential) || epochDenied) return refuse('CLIENT_CERT_DENIED')
      if (banned.has(credential.spki)) return keyBanned()
      return withdrawn.some(({ issuer }) => issuer === credential.issuer) ? refuse('ISSUER_WITHDRAWN') : null
    },
    withdrawnIssuers: () => withdrawn.map(({ issuer }) => issuer),
    size: () => untilMs.size,
    async reload(denial) {
      // A withdrawal is refused only where there is nothing to withdraw, or it is withdrawn.
      if (denial.kind === 'issuer') return
      const before = additions
      const row = await store.get('denial', denialKey(denial))
      // What was denied while the row was read may be this one: it stays.
      if (row === null && additions === before) untilMs.delete(denialKey(denial))
    },
    prune(livedMs) {
      withdrawn = withdrawn.filter((denial) => denial.untilMs > livedMs)
      for (const [key, until] of untilMs) if (until <= livedMs) untilMs.delete(key)
    },
  }
}
