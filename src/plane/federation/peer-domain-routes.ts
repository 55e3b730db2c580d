// Other domains that may have the same machines.

import { type PeerDomain, claimKey } from '#domain/federation/peer-domain.ts'
import { isRefusal, refuseField } from '#domain/core/refusal.ts'
import { allFromPem } from '#pki/pem.ts'
import { claimApi } from '#wire/federation/claim-api.ts'
import { receiveClaims, type ReceiveClaimsDeps } from './take-claims.ts'
import { addPeerDomain, peerDomains, removePeerDomain } from './peer-domains.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { everyRow } from '#plane/core/pages.ts'
import { isoTime } from '#platform/clock.ts'
import { peerDomainApi, type PeerDomainIntroduction, type PeerDomainView } from '#wire/federation/peer-domain-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type PeerDomainRoutesDeps = FlowCore & {
  readonly authority: Pick<Authority, 'roots' | 'view'>
  readonly recovery: Pick<RecoveryAuthority, 'statementKeys'>
  readonly nodeUrl: () => string
}

export const operatorPeerDomainRoutes = (deps: PeerDomainRoutesDeps): readonly Route[] =>
  serve(peerDomainApi, {
    list: async () => {
      const peers = await peerDomains(deps.store)
      return answer({ peer_domains: await Promise.all(peers.map((peer) => viewOf(deps, peer))) })
    },
    self: async () =>
      answer({
        kind: 'muster-peer-domain-1',
        name: deps.authority.view().domain,
        url: deps.nodeUrl(),
        roots: [...deps.authority.roots()],
        statement_keys: [...deps.recovery.statementKeys()],
      } satisfies PeerDomainIntroduction),
    add: (call) => add(deps, call),
    remove: async (call) => {
      const done = await removePeerDomain(deps, call.params.name, attributionOf(call))
      return isRefusal(done) ? done : answer(await viewOf(deps, done.peer))
    },
  })

const add = async (deps: PeerDomainRoutesDeps, call: CallOf<typeof peerDomainApi.add>) => {
  const { name, url, roots, statement_keys: statementKeys } = call.body
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

/** On the node listener: signed by the domain that makes them. */
export const claimRoutes = (deps: ReceiveClaimsDeps): readonly Route[] =>
  serve(claimApi, {
    exchange: async (call) => {
      const outcome = await receiveClaims(deps, call.body.statement, call.principal.source, call.correlation)
      return isRefusal(outcome) ? outcome : answer(outcome)
    },
  })
