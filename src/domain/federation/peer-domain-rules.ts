// Which domains are told of activations here, and believed about theirs.

import { readOf, type Row } from '#domain/core/change.ts'
import { decided, entry, type Attribution, type Decided } from '#domain/core/decision.ts'
import type { PeerDomain } from './peer-domain.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type PeerDomainDecided = Decided & { readonly peer: PeerDomain }

export type AddPeerDomainFacts = {
  readonly existing: Row<PeerDomain> | null
  readonly asked: Pick<PeerDomain, 'name' | 'url' | 'roots' | 'statementKeys'>
  /** The name of our own domain. */
  readonly own: string
  readonly by: Attribution
  readonly nowMs: number
}

export const decideAddPeerDomain = (facts: AddPeerDomainFacts): PeerDomainDecided | Refusal => {
  const { existing, asked, own, by, nowMs } = facts
  if (asked.name === own) return refuse('REQUEST_INVALID', 'that is this domain')
  if (existing !== null && existing.value.removedAtMs === null) return refuse('PEER_DOMAIN_EXISTS', asked.name)
  const peer: PeerDomain = { ...asked, addedAtMs: nowMs, addedBy: by.actor, removedAtMs: null }
  return written(existing, peer, entry(by, nowMs, 'peer_domain.added', {}, { name: peer.name, url: peer.url }))
}

/** What it said is forgotten in time, and counts for nothing from now on. */
export const decideRemovePeerDomain = (
  peer: Row<PeerDomain>,
  by: Attribution,
  nowMs: number,
): PeerDomainDecided | Refusal => {
  const { name, url } = peer.value
  if (peer.value.removedAtMs !== null) return refuse('PEER_DOMAIN_NOT_FOUND', name)
  const removed: PeerDomain = { ...peer.value, removedAtMs: nowMs }
  return written(peer, removed, entry(by, nowMs, 'peer_domain.removed', {}, { name, url }))
}

const written = (
  from: Row<PeerDomain> | null,
  peer: PeerDomain,
  said: ReturnType<typeof entry>,
): PeerDomainDecided => ({
  ...decided({
    reads: [readOf('peer-domain', peer.name, from)],
    writes: [{ put: 'peer-domain', value: peer }],
    entries: [said],
  }),
  peer,
})
