// What a machine is told with a certificate, whichever way it got it.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { toPem } from '#pki/pem.ts'
import { agentProfile, endpointSet, withdrawnPart, type PlaneUrls } from '#plane/core/configuration.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { understoodFields } from '#wire/enrollment/enroll-api.ts'
import type { RenewResponse } from '#wire/identity/identity-api.ts'
import { lineageOf, type HandedOut, type LineageDeps } from './lineage.ts'

export type CertificateAnswerDeps = LineageDeps & {
  readonly issuer: Issuer
  readonly clock: Clock
  readonly urls: () => PlaneUrls
}

/** By an enrollment, a renewal or a recovery. */
export type CertificateGiven = {
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly certificate: HandedOut & { readonly issuer: string; readonly der: string }
}

export const renewalAnswer = (
  deps: CertificateAnswerDeps,
  { node, profile, domain, certificate }: CertificateGiven,
): RenewResponse => {
  const { counter, recoveryToken } = lineageOf(deps, node, certificate)
  return {
    certificate_chain: pemChain(deps.issuer, certificate),
    roots: [...deps.issuer.roots()],
    ...withdrawnPart(deps.issuer),
    profile: agentProfile(profile),
    endpoints: endpointSet(deps.urls()),
    server_time: isoTime(deps.clock.nowMs()),
    understands: [...understoodFields],
    counter,
    recovery_trust: { roots: [...deps.recovery.roots()], statement_keys: [...deps.recovery.statementKeys()] },
    ...(recoveryToken !== null && { recovery_token: recoveryToken }),
    recovery_registered: node.recovery !== null,
    clock_tolerance_ms: domain.clockToleranceMs,
  }
}

/** The leaf, then its issuers, without the root; PEM. */
const pemChain = (
  issuer: Pick<Issuer, 'chainOf'>,
  certificate: { readonly issuer: string; readonly der: string },
): string =>
  [Buffer.from(certificate.der, 'base64'), ...issuer.chainOf(certificate.issuer)]
    .map((der) => toPem('CERTIFICATE', der))
    .join('')
