// Other domains that may have the same machines.

import { claimKey, type PeerDomain } from '#domain/federation/peer-domain.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { allFromPem } from '#pki/pem.ts'
import type { Static } from 'typebox'
import { receiveClaims, type ReceiveClaimsDeps } from './take-claims.ts'
import { addPeerDomain, peerDomains, removePeerDomain, type PeerDomainDeps } from './peer-domains.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { everyRow } from '#plane/core/pages.ts'
import { isoTime } from '#platform/clock.ts'
import {
  ClaimsAnswer,
  ClaimsRequest,
  PeerDomainIntroduction,
  PeerDomainList,
  PeerDomainView,
} from '#wire/federation/claim-api.ts'
import { EmptyRequest } from '#wire/api/operator-api.ts'
import { attributionOf, DomainParams, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type PeerDomainRoutesDeps = PeerDomainDeps & {
  readonly authority: Pick<Authority, 'roots' | 'view'>
  readonly recovery: Pick<RecoveryAuthority, 'statementKeys'>
  readonly nodeUrl: () => string
}

/** Called by other domains, without a client certificate: claims are signed by the domain that makes them. */
export const claimsRoute = (deps: ReceiveClaimsDeps): Route => ({
  method: 'POST',
  path: '/v1/claims',
  access: 'anyone',
  summary: 'What another domain has signed of machines that may be in both registries; answers what is here',
  body: ClaimsRequest,
  answer: ClaimsAnswer,
  handle: async (call) => {
    const { statement } = call.body as Static<typeof ClaimsRequest>
    const outcome = await receiveClaims(deps, statement, call.principal.source, call.correlation)
    return isRefusal(outcome) ? outcome : answer(outcome)
  },
})

export const operatorPeerDomainRoutes = (deps: PeerDomainRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/peer-domains',
    access: 'viewer',
    summary: 'The domains that are told of activations here, and believed about theirs',
    answer: PeerDomainList,
    handle: async () => {
      const peers = await peerDomains(deps.store)
      return answer({ peer_domains: await Promise.all(peers.map((peer) => viewOf(deps, peer))) })
    },
  },
  {
    method: 'GET',
    path: '/v1/peer-domains/self',
    access: 'viewer',
    summary: 'What another domain needs to know of this one',
    answer: PeerDomainIntroduction,
    handle: async () =>
      answer({
        kind: 'muster-peer-domain-1',
        name: deps.authority.view().domain,
        url: deps.nodeUrl(),
        roots: [...deps.authority.roots()],
        statement_keys: [...deps.recovery.statementKeys()],
      } satisfies PeerDomainIntroduction),
  },
  {
    method: 'POST',
    path: '/v1/peer-domains',
    access: 'platform-admin',
    summary: 'Exchanges claims with another domain from now on',
    body: PeerDomainIntroduction,
    answer: PeerDomainView,
    handle: (call) => add(deps, call),
  },
  {
    method: 'POST',
    path: '/v1/peer-domains/:name/remove',
    access: 'platform-admin',
    summary: 'Exchanges nothing with it any more; what it said counts for nothing',
    params: DomainParams,
    body: EmptyRequest,
    answer: PeerDomainView,
    handle: async (call) => {
      const done = await removePeerDomain(deps, param(call, 'name'), attributionOf(call))
      return isRefusal(done) ? done : answer(await viewOf(deps, done.peer))
    },
  },
]

const add = async (deps: PeerDomainRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const { name, url, roots, statement_keys: statementKeys } = call.body as PeerDomainIntroduction
  if (!roots.every((pem) => allFromPem('CERTIFICATE', pem) !== null)) {
    return refuseField('REQUEST_INVALID', 'roots', 'roots holds something that is no certificate in PEM')
  }
  if (!URL.canParse(url)) return refuseField('REQUEST_INVALID', 'url', 'url takes https://HOST:PORT')
  const done = await addPeerDomain(deps, { name, url, roots, statementKeys }, attributionOf(call))
  return isRefusal(done) ? done : answer(await viewOf(deps, done.peer), 201)
}

const viewOf = async ({ store }: PeerDomainRoutesDeps, peer: PeerDomain): Promise<PeerDomainView> => {
  const machines = new Set<string>()
  for await (const { state, node } of everyRow(store, 'claim', claimKey, { where: { domain: peer.name } }))
    if (state === 'active') machines.add(node)
  return {
    name: peer.name,
    url: peer.url,
    added_at: isoTime(peer.addedAtMs),
    added_by: peer.addedBy,
    active_there: machines.size,
  }
}
