// The configuration of a node. Its revision is made from the content: it differs whenever any of it does, and every start and
// every replica computes the same one without a counter.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { runsAsUsual, termsOf, usualTerms, type Service, type ServiceTerms } from '#domain/fleet/overlay.ts'
import { fillTemplates } from '#domain/fleet/templates.ts'
import type { Node } from '#domain/core/node.ts'
import type { Policy } from '#domain/fleet/policy.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import { sha256 } from '#platform/bytes.ts'
import type { AgentProfile, EndpointSet } from '#wire/identity/identity-api.ts'
import type { PlaneConfig, PlaneTrust } from '#wire/channel/channel.ts'
import { checksCapability, termsCapability, type ConfigOverlay, type ConfigService } from '#wire/fleet/overlay.ts'
import type { WireguardConfig } from '#wire/network/peers.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import type { Issuer } from './issuer.ts'

/** From 1: 0 is what an agent says that has none. */
export const revisionOf = (content: object): number => Math.max(1, sha256(JSON.stringify(content)).readUInt32BE(0))

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
export type PlaneUrls = {
  readonly node: string
  readonly recovery: string
  /** When the plane came back to the name in them, after it had been called by another; null or absent: it has not. */
  readonly returnedAtMs?: number | null
  /** Every server there carries the plane's mark, on every replica: agents may be sent this, and never forget it. */
  readonly marked: boolean
}

/**
 * The same URLs have another revision after the plane was called by another name in between: a node that has acknowledged them before
 * may have taken others since, and its acknowledgement of those may be lost.
 */
export const endpointSet = (urls: Pick<PlaneUrls, 'node' | 'recovery' | 'returnedAtMs'>): EndpointSet => {
  const { node, recovery, returnedAtMs = null } = urls
  const content = { runtime: [node], stream: [node.replace(/^https:/, 'wss:')], recovery: [recovery] }
  const revision = revisionOf(returnedAtMs === null ? content : { ...content, returnedAtMs })
  return { id: 'runtime', revision, ...content }
}

export type ConfigurationFacts = {
  readonly node: Pick<Node, 'id' | 'machine'>
  /** What its agent offers in its hello: it is sent nothing that it does not understand. */
  readonly offers: ReadonlySet<string>
  readonly profile: Profile
  readonly domain: DomainSettings
  /** Null: maintenance mode. */
  readonly vcluster: VCluster | null
  readonly wireguard: WireguardConfig | null
  /** Null: its agent does not take any. */
  readonly outputs: readonly ConfigOutput[] | null
  readonly urls: PlaneUrls
}

export const configurationOf = (facts: ConfigurationFacts): PlaneConfig => {
  const { profile, vcluster, wireguard, outputs, urls } = facts
  const content = {
    vcluster: vcluster === null ? null : vcluster.name,
    profile: agentProfile(profile),
    endpoints: endpointSet(urls),
    overlay: wantedOverlay(facts),
    wireguard,
    ...(outputs === null ? {} : { outputs: [...outputs] }),
  }
  return { revision: revisionOf(content), ...content }
}

/** What the node is to run: what its agent is sent, and what is signed for its helper. */
export const wantedOverlay = (
  facts: Pick<ConfigurationFacts, 'domain' | 'node' | 'offers' | 'vcluster'>,
): ConfigOverlay => (facts.vcluster === null ? inMaintenance(facts.domain) : overlayOf(facts.vcluster, facts))

/** The domain's policy, time sync where it names one, and nothing that could drift. */
const inMaintenance = ({ maintenance }: DomainSettings): ConfigOverlay => ({
  vcluster_revision: 0,
  policy: policyOf(maintenance.policy),
  files: [],
  services: maintenance.timeSync === null ? [] : [asUsual(maintenance.timeSync)],
  detect_drift: false,
})

const overlayOf = (
  vcluster: VCluster,
  { domain, node, offers }: Pick<ConfigurationFacts, 'domain' | 'node' | 'offers'>,
): ConfigOverlay => {
  const { timeSync } = domain.maintenance
  const values = { id: node.id, domain: domain.name, vcluster: vcluster.name, tags: node.machine.tags }
  const overlay = fillTemplates(vcluster.overlay, values)
  // A vCluster that keeps time in its own way names its service the same.
  const kept = timeSync === null || overlay.services.some(({ name }) => name === timeSync.name)
  const services = overlay.services
    .filter(({ name }) => offers.has(termsCapability) || runsAsUsual(termsOf(overlay, name)))
    .map((service) => serviceOf(service, termsOf(overlay, service.name)))
  const checks = offers.has(checksCapability) ? overlay.checks.map(checkOf) : []
  return {
    vcluster_revision: vcluster.revision,
    policy: policyOf(vcluster.policy),
    files: overlay.files.map(({ path, mode, content }) => ({ path, mode, content })),
    services: [...(kept ? [] : [asUsual(timeSync)]), ...services],
    ...(checks.length > 0 && { checks }),
    detect_drift: true,
  }
}

const policyOf = ({ enforcementMode, execWhitelist, shellWhitelist, regulated }: Policy): ConfigOverlay['policy'] => ({
  enforcement_mode: enforcementMode,
  exec_whitelist: [...execWhitelist],
  shell_whitelist: [...shellWhitelist],
  regulated,
})

const asUsual = (service: Service): ConfigService => serviceOf(service, usualTerms(service.name))

const serviceOf = ({ name, command }: Service, terms: ServiceTerms): ConfigService => {
  const { user, environment, workingDirectory, restart, limits } = terms
  return {
    name,
    command: [...command],
    ...(!runsAsUsual(terms) && {
      terms: {
        ...{ user, environment: { ...environment }, working_directory: workingDirectory, restart },
        ...{ memory_bytes: limits.memoryBytes, cpus: limits.cpus, open_files: limits.openFiles },
      },
    }),
  }
}

const checkOf = ({
  name,
  command,
  intervalMs,
  timeoutMs,
}: VCluster['overlay']['checks'][number]): NonNullable<ConfigOverlay['checks']>[number] => ({
  name,
  command: [...command],
  interval_ms: intervalMs,
  timeout_ms: timeoutMs,
})

/** More than these at once an agent does not keep. */
const mostWithdrawn = 32

/** The withdrawn authorities for agents, if there are any. */
export const withdrawnPart = (issuer: Pick<Issuer, 'withdrawnIssuers'>): Pick<PlaneTrust, 'withdrawn_issuers'> => {
  const withdrawn = issuer.withdrawnIssuers().slice(0, mostWithdrawn)
  return withdrawn.length === 0 ? {} : { withdrawn_issuers: withdrawn }
}

export const trustOf = (issuer: Pick<Issuer, 'roots' | 'withdrawnIssuers'>): PlaneTrust => {
  const roots = [...issuer.roots()]
  const withdrawn = withdrawnPart(issuer)
  const content = withdrawn.withdrawn_issuers === undefined ? roots : { roots, ...withdrawn }
  return { revision: revisionOf(content), roots, ...withdrawn }
}
