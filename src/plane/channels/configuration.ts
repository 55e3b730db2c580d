// What a node is told to run under, with a revision that changes whenever any of it does.

import type { Row } from '#domain/change.ts'
import type { DomainSettings } from '#domain/domain-settings.ts'
import type { Node } from '#domain/node.ts'
import type { Profile } from '#domain/profile.ts'
import type { AgentProfile, EndpointSet } from '#wire/node-api.ts'
import type { PlaneConfig, PlaneTrust } from '#wire/channel.ts'
import type { Issuer } from '#plane/issuer/issuer.ts'

export const agentProfile = (profile: Profile): AgentProfile => ({
  name: profile.name,
  key_storage: profile.keyStorage,
  key_types: [...profile.certificate.keyTypes],
  lifetime_ms: profile.certificate.lifetimeMs,
  renew_from: profile.certificate.renewFrom,
  renew_to: profile.certificate.renewTo,
})

export const endpointSet = (nodeUrl: string): EndpointSet => ({
  id: 'runtime',
  revision: 1,
  runtime: [nodeUrl],
  stream: [nodeUrl.replace(/^https:/, 'wss:')],
})

export const configurationOf = (
  node: Node,
  profile: Row<Profile>,
  domain: Row<DomainSettings>,
  nodeUrl: string,
): PlaneConfig => ({
  // Each of these only ever grows, so their sum names one combination of them.
  revision: profile.version + domain.version,
  vcluster: node.assignment,
  profile: agentProfile(profile.value),
  endpoints: endpointSet(nodeUrl),
})

/** Roots are added and never taken out of the set while anything hangs under them. */
export const trustOf = (issuer: Pick<Issuer, 'roots'>): PlaneTrust => {
  const roots = [...issuer.roots()]
  return { revision: roots.length, roots }
}
