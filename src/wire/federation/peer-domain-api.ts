// Other domains that may have the same machines, and how operators introduce them to each other.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { domainNameShape } from '#wire/core/join-string.ts'
import { closed, EmptyRequest } from '#wire/core/shapes.ts'
import type { PeerDomain } from '#domain/federation/peer-domain.ts'
import { isoTime } from '#platform/clock.ts'

const DomainName = Type.String({ pattern: domainNameShape.source, maxLength: 253 })
const DomainParams = Type.Object({ name: DomainName }, closed)

/** `GET /v1/peer-domains/self`, written to a file there and given to `POST /v1/peer-domains` here. */
export const PeerDomainIntroduction = Type.Object(
  {
    kind: Type.Literal('muster-peer-domain-1'),
    name: DomainName,
    url: Type.String({ pattern: '^https://[^@/?#]+$', maxLength: 300 }),
    roots: Type.Array(Type.String({ minLength: 1, maxLength: 16_384 }), { minItems: 1, maxItems: 8 }),
    statement_keys: Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/]{40,400}={0,2}$' }), {
      minItems: 1,
      maxItems: 8,
    }),
  },
  closed,
)
export type PeerDomainIntroduction = Static<typeof PeerDomainIntroduction>

export const PeerDomainView = Type.Object({
  name: Type.String(),
  url: Type.String(),
  added_at: Type.String(),
  added_by: Type.String(),
  /** Machines it says are active there and that our registry knows. */
  active_there: Type.Integer(),
})
export type PeerDomainView = Static<typeof PeerDomainView>
/** `activeThere`: machines that it says are active there and that our registry knows. */
export const peerDomainView = (peer: PeerDomain, activeThere: number): PeerDomainView => ({
  name: peer.name,
  url: peer.url,
  added_at: isoTime(peer.addedAtMs),
  added_by: peer.addedBy,
  active_there: activeThere,
})

export const PeerDomainList = Type.Object({ peer_domains: Type.Array(PeerDomainView) })

export const peerDomainApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/peer-domains',
    access: 'viewer',
    summary: 'The peer domains: they get the activations of this domain, and theirs are taken as advice',
    answer: PeerDomainList,
  }),
  self: endpoint({
    method: 'GET',
    path: '/v1/peer-domains/self',
    access: 'viewer',
    summary: 'What another domain needs to know of this one',
    answer: PeerDomainIntroduction,
  }),
  add: endpoint({
    method: 'POST',
    path: '/v1/peer-domains',
    access: 'platform-admin',
    summary: 'Exchanges claims with another domain from now on',
    body: PeerDomainIntroduction,
    answer: PeerDomainView,
  }),
  remove: endpoint({
    method: 'POST',
    path: '/v1/peer-domains/:name/remove',
    access: 'platform-admin',
    summary: 'Exchanges nothing with it any more; what it said counts for nothing',
    params: DomainParams,
    body: EmptyRequest,
    answer: PeerDomainView,
  }),
}
