// What this machine could recover with, if it had to: a repair bundle that an operator has brought, or what it registered
// itself. The server of recovery is known by roots of its own, and by nothing else.

import type { RecoverRequest, RepairBundle } from '#wire/recovery/recovery-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { CallTarget } from '#agent/link/anonymous-call.ts'
import type { AgentRecovery, Identity } from '#agent/state/credentials.ts'
import { classified, trouble, type Trouble } from '#agent/core/trouble.ts'
import { expired, isExpired, recoveryKeyDamage } from '#agent/state/sound-credentials.ts'
import { addresses } from '#agent/link/plane-client.ts'
import { keyCredential } from '#agent/link/prove.ts'

export type WayBack = {
  readonly domain: string
  readonly node: string
  readonly target: CallTarget
  readonly credential:
    Exclude<AgentRecovery['credential'], { kind: 'none' }> | { readonly kind: 'repair'; readonly bundle: RepairBundle }
  readonly counter: string | null
}

/** Null: only a new join string helps. */
export const wayBack = ({ bundles, keeper }: Pick<AgentParts, 'bundles' | 'keeper'>): WayBack | null => {
  const { identity } = keeper.credentials()
  const bundle = bundles.find(identity)
  if (bundle !== null) return byBundle(bundle, identity)
  return identity === null ? null : ownWayBack(identity)
}

const byBundle = (bundle: RepairBundle, identity: Identity | null): WayBack => {
  const { domain, node_id: node, recovery_urls: urls, recovery_roots: roots, statement_keys: statementKeys } = bundle
  return {
    domain,
    node,
    target: {
      ...{ urls, trust: { kind: 'roots', roots }, purpose: 'recovery', pinned: { domain, statementKeys } },
      plane: { domain, marked: bundle.marked === true || identity?.marked === true },
    },
    credential: { kind: 'repair', bundle },
    counter: identity?.counter ?? null,
  }
}

/** The one that rehearsals show to work; it is there before it is needed. */
export const ownWayBack = (identity: Identity): WayBack | null => {
  const { nodeId, domain, marked, endpoints, recovery, counter } = identity
  const urls = endpoints.recovery ?? []
  if (recoveryKeyDamage(identity) !== null) return null
  if (recovery === null || recovery.credential.kind === 'none' || urls.length === 0) return null
  const { roots, statement_keys: statementKeys } = recovery.trust
  return {
    domain,
    node: nodeId,
    target: {
      ...{ urls, trust: { kind: 'roots', roots }, purpose: 'recovery', pinned: { domain, statementKeys } },
      plane: { domain, marked },
    },
    credential: recovery.credential,
    counter,
  }
}

/** Where the node is served while all is well; without our certificate it still says what time it is. */
export const runtimeTarget = ({ domain, marked, endpoints, origin, roots, recovery }: Identity): CallTarget => {
  const statementKeys = recovery?.trust.statement_keys ?? []
  return {
    urls: addresses(endpoints.runtime, origin.url),
    trust: { kind: 'roots', roots },
    plane: { domain, marked },
    purpose: 'runtime',
    pinned: statementKeys.length === 0 ? null : { domain, statementKeys },
  }
}

/** `csrPem` null: at a rehearsal. */
export const credentialOf = (
  { credential }: WayBack,
  about: {
    readonly node: string
    readonly challenge: string
    readonly csrPem: string | null
    readonly counter: string | null
  },
): RecoverRequest['credential'] => {
  switch (credential.kind) {
    case 'key':
      return keyCredential(credential, about)
    case 'bearer':
      return { kind: 'bearer', token: credential.token }
    case 'repair':
      return { kind: 'repair', token: credential.bundle.recovery_token }
  }
}

type WatchingAgent = Pick<AgentParts, 'bundles' | 'keeper' | 'episode' | 'clock'>

/** One untrusted server may be a wrong route; this many in a row, at every address, mean that the root has changed. */
const untrustedInARow = 3

/** No failure of its own. Making a bundle quarantines the node, so that its identity is fenced, whatever else has failed. */
export const repairRequested: Trouble = classified(
  trouble('repair_requested', 'A repair bundle was brought to this machine.', 'The agent uses it automatically'),
  'identity_revoked_or_fenced',
)

/** Why the identity in use no longer works, as far as this machine knows. Null: the agent goes on with it. */
export const reasonToRecover = (agent: WatchingAgent, identity: Identity): Trouble | null => {
  const { episode } = agent
  const way = wayBack(agent)
  if (way === null) return null
  if (way.credential.kind === 'repair') return repairRequested
  // An open channel proves that the plane accepts the certificate and that our roots verify the plane.
  if (episode.channelIsOpen()) return null
  if (isExpired(agent, identity)) return expired(agent, identity)
  const story = episode.current()
  return story !== null && episode.distrusted() >= untrustedInARow ? story.trouble : null
}
