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
})

export const endpointSet = (nodeUrl: string): EndpointSet => {
  const urls = { runtime: [nodeUrl], stream: [nodeUrl.replace(/^https:/, 'wss:')] }
  return { id: 'runtime', revision: revisionOf(urls), ...urls }
}

export const configurationOf = (node: Node, profile: Profile, nodeUrl: string): PlaneConfig => {
  const content = {
    vcluster: node.assignment,
    profile: agentProfile(profile),
    endpoints: endpointSet(nodeUrl),
  }
  return { revision: revisionOf(content), ...content }
}

export const trustOf = (issuer: Pick<Issuer, 'roots'>): PlaneTrust => {
  const roots = [...issuer.roots()]
  return { revision: revisionOf(roots), roots }
}
