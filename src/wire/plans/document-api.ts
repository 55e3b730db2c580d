// What a domain is set up with, as one document: `muster export` and `muster apply`. Keys of settings are those of `profile set`,
// `vcluster set` and `domain set`, in groups; their rules refuse those that are none.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NameText, orNull } from '#wire/core/shapes.ts'
import { CreateHardwareProfileRequest } from '#wire/fleet/hardware-api.ts'
import { OverlayRequest } from '#wire/fleet/overlay-document.ts'
import { DeclaredIssuer } from '#wire/issuers/issuer-settings.ts'
import { CreateWorkerIssuerRequest } from '#wire/workers/worker-issuer-api.ts'
import { PlanView } from './plan-api.ts'

/** A later form of the document has another, so that no reader takes one for the other. */
export const documentVersion = 'muster/v1'

/** In bytes, as JSON. */
export const largestDocument = 2 * 1024 * 1024

const most = { maxItems: 500 }

/** A tree of settings: which there are, and what they take, say their rules. */
const settings = { additionalProperties: Type.Unknown(), maxProperties: 64 }

const ProfileInDocument = Type.Object({ name: NameText }, settings)
const VClusterInDocument = Type.Object({ name: NameText, ...OverlayRequest.properties }, settings)

/** Sections that are left out are not looked at. What is left out of a thing that is there stays as it is. */
export const DocumentBody = Type.Object(
  {
    apiVersion: Type.Literal(documentVersion),
    domain: Type.Optional(Type.Object({}, settings)),
    profiles: Type.Optional(Type.Array(ProfileInDocument, most)),
    hardwareProfiles: Type.Optional(Type.Array(CreateHardwareProfileRequest, most)),
    vclusters: Type.Optional(Type.Array(VClusterInDocument, most)),
    workerIssuers: Type.Optional(Type.Array(CreateWorkerIssuerRequest, most)),
    issuers: Type.Optional(Type.Array(DeclaredIssuer, most)),
  },
  closed,
)
export type DocumentBody = Static<typeof DocumentBody>

export type Section = Exclude<keyof DocumentBody, 'apiVersion'>

/** `POST /v1/document/plan`. `prune`: what the sections of the document leave out is deleted. */
export const DocumentRequest = Type.Object({ document: DocumentBody, prune: Type.Optional(Type.Boolean()) }, closed)

export const DocumentPlanned = Type.Object({
  /** Null: everything is as the document says, and there is nothing to apply. */
  plan: orNull(PlanView),
  /** How many of the things it declares are as it says. */
  unchanged: Type.Integer(),
})

export const documentApi = {
  export: endpoint({
    method: 'GET',
    path: '/v1/document',
    access: 'viewer',
    summary:
      'Profiles, vClusters, hardware profiles, issuers, worker issuers and the values of the domain, as the document that plans take',
    answer: DocumentBody,
  }),
  plan: endpoint({
    method: 'POST',
    path: '/v1/document/plan',
    access: 'platform-admin',
    summary: 'What applying a document would do, as one plan that is applied whole or not at all',
    largestBody: largestDocument,
    body: DocumentRequest,
    answer: DocumentPlanned,
  }),
}
