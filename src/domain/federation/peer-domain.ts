// Other domains that may have the same machines in their registries. Advisory only: no answer of theirs ever decides
// anything here.

import type { NodeId } from '#domain/core/node.ts'
import { readOf, type Row, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'

export type PeerDomain = {
  readonly name: string
  /** Its node listener: `POST /v1/claims` is there. */
  readonly url: string
  /** PEM of the roots its listener is verified with. */
  readonly roots: readonly string[]
  /** SubjectPublicKeyInfo, DER, base64: who signs its claims. */
  readonly statementKeys: readonly string[]
  readonly addedAtMs: number
  readonly addedBy: string
  readonly removedAtMs: number | null
}

/** What another domain last said of a machine, by one of its hardware addresses. */
export type Claim = {
  /** `mac:...` or `bmc:...`. */
  readonly hardware: string
  readonly domain: string
  readonly node: NodeId
  readonly state: 'active' | 'inactive'
  readonly atMs: number
  readonly receivedAtMs: number
}

export const claimKey = ({ hardware, domain }: Pick<Claim, 'hardware' | 'domain'>): string => `${hardware}/${domain}`

/** How long a claim counts without being repeated. */
export const claimKeptMs = 30 * 24 * 3_600_000

// The peer domains, which get the activations here and whose claims are taken.

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
  if (asked.name === own) return refuseField('REQUEST_INVALID', 'name', 'that is this domain')
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
