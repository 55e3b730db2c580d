// Other domains that may have the same machines.

import { type PeerDomain, claimKey } from '#domain/federation/peer-domain.ts'
import { isRefusal, refuseField } from '#domain/core/refusal.ts'
import { allFromPem } from '#pki/pem.ts'
import { claimApi } from '#wire/federation/claim-api.ts'
import { receiveClaims, type ClaimBudget } from './take-claims.ts'
import { addPeerDomain, peerDomains, removePeerDomain } from './peer-domains.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { everyRow } from '#plane/core/pages.ts'
import {
  peerDomainApi,
  peerDomainView,
  type PeerDomainIntroduction,
  type PeerDomainView,
} from '#wire/federation/peer-domain-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'

type PeerDomainParts = {
  readonly authority: Pick<Authority, 'roots' | 'view'>
  readonly recovery: Pick<RecoveryAuthority, 'statementKeys'>
  readonly nodeUrl: () => string
}

export const operatorPeerDomainRoutes = (
  core: FlowCore,
  { authority, recovery, nodeUrl }: PeerDomainParts,
): readonly Route[] =>
  serve(peerDomainApi, {
    list: async () => {
      const peers = await peerDomains(core.store)
      return answer({ peer_domains: await Promise.all(peers.map((peer) => viewOf(core.store, peer))) })
    },
    self: async () =>
      answer({
        kind: 'muster-peer-domain-1',
        name: authority.view().domain,
        url: nodeUrl(),
        roots: [...authority.roots()],
        statement_keys: [...recovery.statementKeys()],
      } satisfies PeerDomainIntroduction),
    add: (call) => add(core, call),
    remove: async (call) => {
      const done = await removePeerDomain(core, call.params.name, attributionOf(call))
      return isRefusal(done) ? done : answer(await viewOf(core.store, done.peer))
    },
  })

const add = async (core: FlowCore, call: CallOf<typeof peerDomainApi.add>) => {
  const { name, url, roots, statement_keys: statementKeys } = call.body
  if (!roots.every((pem) => allFromPem('CERTIFICATE', pem) !== null)) {
    return refuseField('REQUEST_INVALID', 'roots', 'roots holds something that is no certificate in PEM')
  }
  if (!URL.canParse(url)) return refuseField('REQUEST_INVALID', 'url', 'url takes https://HOST:PORT')
  const done = await addPeerDomain(core, { name, url, roots, statementKeys }, attributionOf(call))
  return isRefusal(done) ? done : answer(await viewOf(core.store, done.peer), 201)
}

const viewOf = async (store: Store, peer: PeerDomain): Promise<PeerDomainView> => {
  const machines = new Set<string>()
  for await (const { state, node } of everyRow(store, 'claim', claimKey, { where: { domain: peer.name } }))
    if (state === 'active') machines.add(node)
  return peerDomainView(peer, machines.size)
}

/** On the node listener: signed by the domain that makes them. */
export const claimRoutes = (core: FlowCore, anonymousBudget: ClaimBudget): readonly Route[] =>
  serve(claimApi, {
    exchange: async (call) => {
      const outcome = await receiveClaims(core, anonymousBudget, {
        statement: call.body.statement,
        source: call.principal.source,
        correlation: call.correlation,
      })
      return isRefusal(outcome) ? outcome : answer(outcome)
    },
  })
