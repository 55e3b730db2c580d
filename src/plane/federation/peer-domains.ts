// The domains this one exchanges claims with.

import type { Attribution } from '#domain/core/change.ts'
import {
  decideAddPeerDomain,
  decideRemovePeerDomain,
  type AddPeerDomainFacts,
  type PeerDomainDecided,
  type PeerDomain,
} from '#domain/federation/peer-domain.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** Sites that share machines know each other by name. */
const mostPeers = 100

export const peerDomains = async (store: Pick<Store, 'list'>): Promise<readonly PeerDomain[]> =>
  (await store.list('peer-domain', { after: null, limit: mostPeers }))
    .map(({ value }) => value)
    .filter(({ removedAtMs }) => removedAtMs === null)

export const addPeerDomain = (
  deps: FlowCore,
  asked: AddPeerDomainFacts['asked'],
  by: Attribution,
): Promise<Done<PeerDomainDecided> | Refusal> =>
  commitDecision(deps, async () => {
    const existing = await deps.store.get('peer-domain', asked.name)
    const { value: own } = await domainSettingsRow(deps.store)
    return decideAddPeerDomain({ existing, asked, own: own.name, by, nowMs: deps.clock.nowMs() })
  })

export const removePeerDomain = (
  deps: FlowCore,
  name: string,
  by: Attribution,
): Promise<Done<PeerDomainDecided> | Refusal> =>
  commitDecision(deps, async () => {
    const peer = await deps.store.get('peer-domain', name)
    if (peer === null) return refuse('PEER_DOMAIN_NOT_FOUND', name)
    return decideRemovePeerDomain(peer, by, deps.clock.nowMs())
  })
