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
  core: FlowCore,
  asked: AddPeerDomainFacts['asked'],
  by: Attribution,
): Promise<Done<PeerDomainDecided> | Refusal> =>
  commitDecision(core, async () => {
    const existing = await core.store.get('peer-domain', asked.name)
    const { value: own } = await domainSettingsRow(core.store)
    return decideAddPeerDomain({ existing, asked, own: own.name, by, nowMs: core.clock.nowMs() })
  })

export const removePeerDomain = (
  core: FlowCore,
  name: string,
  by: Attribution,
): Promise<Done<PeerDomainDecided> | Refusal> =>
  commitDecision(core, async () => {
    const peer = await core.store.get('peer-domain', name)
    if (peer === null) return refuse('PEER_DOMAIN_NOT_FOUND', name)
    return decideRemovePeerDomain(peer, by, core.clock.nowMs())
  })
