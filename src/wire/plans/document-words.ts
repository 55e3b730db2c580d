// The words that a document of this version can have at each place, for those who look for the one that was meant. What it may say there is
// decided by the rules of each thing.

import { CreateHardwareProfileRequest } from '#wire/fleet/hardware-api.ts'
import { OverlayRequest } from '#wire/fleet/overlay-document.ts'
import { VClusterSettings } from '#wire/fleet/vcluster-api.ts'
import { DomainBody, ProfileBody } from '#wire/settings/settings-api.ts'
import { DeclaredIssuer } from '#wire/issuers/issuer-settings.ts'
import { CreateWorkerIssuerRequest } from '#wire/workers/worker-issuer-api.ts'
import type { DocumentBody } from './document-api.ts'

/** As much of a schema as words need. */
export type Words = {
  readonly type?: unknown
  readonly enum?: unknown
  readonly anyOf?: unknown
  readonly properties?: Readonly<Record<string, Words>>
  readonly items?: Words
}

export const documentWords: Words = {
  properties: {
    apiVersion: {},
    domain: DomainBody,
    profiles: { items: ProfileBody },
    hardwareProfiles: { items: CreateHardwareProfileRequest },
    vclusters: { items: { properties: { name: {}, ...VClusterSettings.properties, ...OverlayRequest.properties } } },
    workerIssuers: { items: CreateWorkerIssuerRequest },
    issuers: { items: DeclaredIssuer },
  } satisfies Readonly<Record<keyof DocumentBody, Words>>,
}
