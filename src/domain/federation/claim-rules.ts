// Claims of other domains about machines that are in our registry too. They are advice: a machine is active in one domain at a
// time because it boots from one, not because the domains agreed on it. So a claim raises or clears a condition that
// blocks nothing, and a missing answer changes nothing.

import {
  readOf,
  type Row,
  decided,
  entry,
  type Attribution,
  type Decided,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { decideClear, decideRaise, type Unchanged } from '#domain/core/conditions.ts'
import { claimKey, claimKeptMs, type Claim, type PeerDomain } from './peer-domain.ts'

export type TakeClaimsFacts = {
  readonly peer: Row<PeerDomain>
  /** As said now, and what the same domain said of the same hardware before. */
  readonly claims: readonly { readonly said: Omit<Claim, 'receivedAtMs'>; readonly known: Row<Claim> | null }[]
  readonly by: Attribution
  readonly nowMs: number
}

/** Repeated, it changes nothing before half the time is over after which a claim is forgotten. */
const refreshAfterMs = claimKeptMs / 2

export const decideTakeClaims = ({ peer, claims, by, nowMs }: TakeClaimsFacts): Decided | Unchanged => {
  const news = claims.filter(({ said, known }) => isNews(said, known, nowMs))
  if (news.length === 0) return { kind: 'unchanged' }
  const body = {
    domain: peer.value.name,
    machines: new Set(news.map(({ said }) => said.node)).size,
    active: new Set(news.flatMap(({ said }) => (said.state === 'active' ? [said.node] : []))).size,
  }
  return decided({
    reads: [
      // A domain that is removed meanwhile is not believed.
      readOf('peer-domain', peer.value.name, peer),
      ...news.map(({ said, known }) => readOf('claim', claimKey(said), known)),
    ],
    writes: news.map(({ said }) => ({ put: 'claim', value: { ...said, receivedAtMs: nowMs } })),
    entries: [entry(by, nowMs, 'claim.received', {}, body)],
  })
}

const isNews = (said: Omit<Claim, 'receivedAtMs'>, known: Row<Claim> | null, nowMs: number): boolean => {
  if (known === null) return true
  // Over two connections an older claim may arrive last.
  if (said.atMs < known.value.atMs) return false
  const same = known.value.state === said.state && known.value.node === said.node
  return !same || nowMs - known.value.receivedAtMs > refreshAfterMs
}

export type ElsewhereFacts = NodeFacts & {
  /** Of domains that are still peers, about any of its hardware. */
  readonly claims: readonly Claim[]
}

/** Raises or clears `active_elsewhere`: only of a node that is active here too is it worth saying. */
export const decideElsewhere = ({ node, claims, by, nowMs }: ElsewhereFacts): NodeDecided | Unchanged => {
  const elsewhere = claims.filter(({ state, receivedAtMs }) => state === 'active' && nowMs - receivedAtMs < claimKeptMs)
  const [first] = elsewhere
  if (first === undefined || node.value.membership.kind !== 'active') {
    return decideClear({ node, name: 'active_elsewhere', by, nowMs })
  }
  return decideRaise({
    node,
    name: 'active_elsewhere',
    reason: `${first.domain} says that this machine is active there as ${first.node}`,
    evidence: { domain: first.domain, node: first.node, domains: new Set(elsewhere.map(({ domain }) => domain)).size },
    by,
    nowMs,
  })
}
