// What crosses the network between an agent and the plane over HTTP.

import { Type, type Static } from 'typebox'
import { OverlayConfig, WireguardRequest } from '#wire/network/peers.ts'
import { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import { longestStatement } from './statement.ts'
import { closed, text } from '#wire/core/shapes.ts'

export const nodeIdShape = '^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$'
export const NodeIdText = Type.String({
  pattern: nodeIdShape,
  maxLength: 63,
  description: 'Lower-case letters, digits, dots, dashes and underscores',
})

export const HardwareIdentityBody = Type.Object(
  {
    macs: Type.Array(Type.String({ pattern: '^[0-9a-f]{2}(:[0-9a-f]{2}){5}$' }), { maxItems: 64 }),
    bmc_serial: Type.Union([text(128), Type.Null()]),
  },
  closed,
)

export const HardwareFactsBody = Type.Object(
  {
    cpu_cores: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
    memory_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    disk_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    arch: text(32),
  },
  closed,
)

/** `POST /v1/enroll` */
export const EnrollRequest = Type.Object(
  {
    method: Type.Union([Type.Literal('token'), Type.Literal('hardware')]),
    /** Checked for its shape by the flow, so that a bad one is TOKEN_MALFORMED and not a schema error. */
    enrollment_token: Type.Optional(Type.String({ maxLength: 256 })),
    /** For a token of the domain: the name the node asks for. Left out: the plane makes one. */
    node_id: Type.Optional(NodeIdText),
    hardware_identity: Type.Optional(HardwareIdentityBody),
    hardware_facts: Type.Optional(HardwareFactsBody),
    /** PKCS#10, PEM. */
    csr: text(16_384),
    /** How the node recovers when its certificate cannot help it any more. */
    recovery: Type.Optional(RecoveryRegistration),
    /** To take part in the WireGuard network of the domain. */
    wireguard: Type.Optional(WireguardRequest),
  },
  closed,
)
export type EnrollRequest = Static<typeof EnrollRequest>

/** What this plane understands in requests, told to every agent so that a newer one sends nothing an older plane refuses. */
export const understoodFields: readonly string[] = [
  ...Object.keys(EnrollRequest.properties),
  // Not fields of an enrollment, but of the calls and frames an enrolled agent makes.
  'counter',
  'evidence',
  'report',
  // `recovery` of a renewal.
  'renewal_recovery',
  // Of a recovery.
  'sighting',
  // The failure class, in a recovery and in reports.
  'credentials_damaged',
]

const EndpointSet = Type.Object({
  id: Type.String(),
  revision: Type.Integer(),
  runtime: Type.Array(Type.String()),
  stream: Type.Array(Type.String()),
  /** Left out by planes that have no recovery listener. */
  recovery: Type.Optional(Type.Array(Type.String())),
})
export type EndpointSet = Static<typeof EndpointSet>

/** What an agent needs to know of its profile. */
const AgentProfile = Type.Object({
  name: Type.String(),
  key_storage: Type.Union([Type.Literal('file'), Type.Literal('memory'), Type.Literal('tpm')]),
  key_types: Type.Array(Type.String()),
  lifetime_ms: Type.Integer(),
  renew_from: Type.Number(),
  renew_to: Type.Number(),
  recovery: Type.Optional(
    Type.Object({
      mode: Type.Union([Type.Literal('auto'), Type.Literal('approve'), Type.Literal('deny')]),
      rehearse_every_ms: Type.Integer(),
    }),
  ),
})
export type AgentProfile = Static<typeof AgentProfile>

/** The trust of recovery, which outlives that of the runtime; pinned at enrollment, refreshed by every renewal. */
export const RecoveryTrust = Type.Object({
  /** PEM, one certificate each. */
  roots: Type.Array(Type.String()),
  /** SubjectPublicKeyInfo, DER, base64: who signs statements of time, challenges and counters. */
  statement_keys: Type.Array(Type.String()),
})
export type RecoveryTrust = Static<typeof RecoveryTrust>

/** What every answer with a certificate says besides. Left out by planes that know no recovery. */
const lineage = {
  /** Key identifiers of authorities that are to be trusted no more; left out where there are none. */
  withdrawn_issuers: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 })),
  counter: Type.Optional(Type.String({ maxLength: longestStatement })),
  recovery_trust: Type.Optional(RecoveryTrust),
  /** The next bearer token, in compatibility mode; the one before is worth nothing once the certificate is used. */
  recovery_token: Type.Optional(Type.String({ maxLength: 256 })),
  /** False: the plane has nothing registered that this node could recover with, whatever it had before. */
  recovery_registered: Type.Optional(Type.Boolean()),
  clock_tolerance_ms: Type.Optional(Type.Integer()),
}

/** Agents take fields they do not know: a newer plane may say more. Hence no `closed` on answers. */
export const EnrollResponse = Type.Object({
  node_id: Type.String(),
  domain: Type.String(),
  epoch: Type.Integer(),
  /** PEM: the leaf, then its issuers, without the root. */
  certificate_chain: Type.String(),
  roots: Type.Array(Type.String()),
  vcluster: Type.Union([Type.String(), Type.Null()]),
  profile: AgentProfile,
  endpoints: EndpointSet,
  server_time: Type.String(),
  liveness_grace_ms: Type.Integer(),
  /** Field names of requests this plane understands: an agent sends no others. */
  understands: Type.Array(Type.String()),
  /** Null: the node takes no part in the WireGuard network. Left out by planes that have none. */
  overlay_config: Type.Optional(Type.Union([OverlayConfig, Type.Null()])),
  ...lineage,
})
export type EnrollResponse = Static<typeof EnrollResponse>

/** `POST /v1/nodes/{id}/renew` */
export const RenewRequest = Type.Object(
  {
    csr: text(16_384),
    counter: Type.Optional(text(longestStatement)),
    /** From a node with nothing registered, to a plane that understands `renewal_recovery`. */
    recovery: Type.Optional(RecoveryRegistration),
  },
  closed,
)
export type RenewRequest = Static<typeof RenewRequest>

export const RenewResponse = Type.Object({
  certificate_chain: Type.String(),
  roots: Type.Array(Type.String()),
  profile: AgentProfile,
  endpoints: EndpointSet,
  server_time: Type.String(),
  /** As at enrollment: the plane may be a newer one by now. Left out by planes of before. */
  understands: Type.Optional(Type.Array(Type.String())),
  ...lineage,
})
export type RenewResponse = Static<typeof RenewResponse>

/** `POST /v1/nodes/{id}/confirm` */
export const ConfirmRequest = Type.Object(
  {
    /** False: the agent could not keep what it was given, and says so. */
    persisted: Type.Optional(Type.Boolean()),
    detail: Type.Optional(text(256)),
  },
  closed,
)
export const ConfirmResponse = Type.Object({
  node_id: Type.String(),
  membership: Type.String(),
  server_time: Type.String(),
})

/** `GET /v1/bundle` */
export const BundleResponse = Type.Object({
  domain: Type.String(),
  roots: Type.Array(Type.String()),
  root_fingerprint: Type.String(),
  server_time: Type.String(),
})

/** Every refusal, on every listener. */
export const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  detail: Type.Union([Type.String(), Type.Null()]),
  next: Type.String(),
  retry_after_ms: Type.Union([Type.Integer(), Type.Null()]),
  /** The field of the request that is at fault, as a path: `wireguard.public_key`. Left out where it is no single one. */
  field: Type.Optional(Type.String()),
  /** True: the plane does not know the field. Agents send a request again without an optional part that is not known. */
  field_unknown: Type.Optional(Type.Boolean()),
  /** True: a cut-off that could not be committed is in force at the replica that answers. */
  in_force_here: Type.Optional(Type.Boolean()),
  /** With it: the replicas that do not know of it, and where the order is kept until it is committed. */
  replicas_unaware: Type.Optional(Type.Array(Type.String())),
  kept_in: Type.Optional(Type.Union([Type.Literal('data folder'), Type.Literal('memory')])),
})
export type ErrorBody = Static<typeof ErrorBody>
