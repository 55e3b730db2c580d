// What a node is told to run under. Revisions are made from the content: they differ whenever any of it does, and every
// start and every replica of the plane comes to the same one without keeping count.

import type { Node } from '#domain/node.ts'
import type { Profile } from '#domain/profile.ts'
import { sha256 } from '#platform/bytes.ts'
import type { AgentProfile, EndpointSet } from '#wire/node-api.ts'
import type { PlaneConfig, PlaneTrust } from '#wire/channel.ts'
import type { Issuer } from '#plane/issuer/issuer.ts'

/** From 1: 0 is what an agent says that has none. */
const revisionOf = (content: object): number => Math.max(1, sha256(JSON.stringify(content)).readUInt32BE(0))

export const agentProfile = (profile: Profile): AgentProfile => ({
  name: profile.name,
  key_storage: profile.keyStorage,
  key_types: [...profile.certificate.keyTypes],
  lifetime_ms: profile.certificate.lifetimeMs,
  renew_from: profile.certificate.renewFrom,
  renew_to: profile.certificate.renewTo,
  recovery: { mode: profile.recovery.mode, rehearse_every_ms: profile.recovery.rehearseEveryMs },
})

/** Where machines find the plane. */
export type PlaneUrls = { readonly node: string; readonly recovery: string }

export const endpointSet = ({ node, recovery }: PlaneUrls): EndpointSet => {
  const urls = { runtime: [node], stream: [node.replace(/^https:/, 'wss:')], recovery: [recovery] }
  return { id: 'runtime', revision: revisionOf(urls), ...urls }
}

export const configurationOf = (node: Node, profile: Profile, urls: PlaneUrls): PlaneConfig => {
  const content = {
    vcluster: node.assignment,
    profile: agentProfile(profile),
    endpoints: endpointSet(urls),
  }
  return { revision: revisionOf(content), ...content }
}

export const trustOf = (issuer: Pick<Issuer, 'roots'>): PlaneTrust => {
  const roots = [...issuer.roots()]
  return { revision: revisionOf(roots), roots }
}
