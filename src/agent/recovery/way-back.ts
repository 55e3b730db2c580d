// What this machine could recover with, if it had to: a repair bundle that an operator has brought, or what it registered
// itself. The server of recovery is known by roots of its own, and by nothing else.

import type { RecoverRequest, RepairBundle } from '#wire/recovery/recovery-api.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { Door } from '#agent/link/knock.ts'
import type { AgentRecovery, Identity } from '#agent/state/credentials.ts'
import { recoveryKeyDamage } from '#agent/state/sound-credentials.ts'
import { addresses } from '#agent/link/plane-client.ts'
import { keyCredential } from '#agent/link/prove.ts'

export type WayBack = {
  readonly domain: string
  readonly node: string
  readonly door: Door
  readonly credential:
    Exclude<AgentRecovery['credential'], { kind: 'none' }> | { readonly kind: 'repair'; readonly bundle: RepairBundle }
  readonly counter: string | null
}

/** Null: only a new invitation helps. */
export const wayBack = ({ bundles, keeper }: Pick<AgentParts, 'bundles' | 'keeper'>): WayBack | null => {
  const { identity } = keeper.credentials()
  const bundle = bundles.find(identity)
  if (bundle !== null) return byBundle(bundle, identity)
  return identity === null ? null : byItself(identity)
}

const byBundle = (bundle: RepairBundle, identity: Identity | null): WayBack => {
  const { domain, node_id: node, recovery_urls: urls, recovery_roots: roots, statement_keys: statementKeys } = bundle
  return {
    domain,
    node,
    door: { urls, trust: { kind: 'roots', roots }, purpose: 'recovery', pinned: { domain, statementKeys } },
    credential: { kind: 'repair', bundle },
    counter: identity?.counter ?? null,
  }
}

/** The one that rehearsals show to work; it is there before it is needed. */
export const byItself = (identity: Identity): WayBack | null => {
  const { nodeId, domain, endpoints, recovery, counter } = identity
  const urls = endpoints.recovery ?? []
  if (recoveryKeyDamage(identity) !== null) return null
  if (recovery === null || recovery.credential.kind === 'none' || urls.length === 0) return null
  const { roots, statement_keys: statementKeys } = recovery.trust
  return {
    domain,
    node: nodeId,
    door: { urls, trust: { kind: 'roots', roots }, purpose: 'recovery', pinned: { domain, statementKeys } },
    credential: recovery.credential,
    counter,
  }
}

/** Where the node is served while all is well; without our certificate it still says what time it is. */
export const runtimeDoor = ({ domain, endpoints, origin, roots, recovery }: Identity): Door => {
  const statementKeys = recovery?.trust.statement_keys ?? []
  return {
    urls: addresses(endpoints.runtime, origin.url),
    trust: { kind: 'roots', roots },
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
