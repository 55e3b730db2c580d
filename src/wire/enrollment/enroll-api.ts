// Enrollment on the wire: what a machine proves, and what it gets.

import { Type, type Static } from 'typebox'
import { HardwareIdentityBody } from '#wire/core/agent-evidence.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, text } from '#wire/core/shapes.ts'
import {
  AgentProfile,
  certificateExtras,
  EndpointSet,
  IdentityProof,
  RecoveryRegistration,
} from '#wire/identity/identity-api.ts'
import { OverlayConfig, WireguardRequest } from '#wire/network/peers.ts'

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
    /** How the node recovers when its certificate no longer works. */
    recovery: Type.Optional(RecoveryRegistration),
    /** Of the identity that the machine has, while its node is active; to a plane that understands it. */
    identity_proof: Type.Optional(IdentityProof),
    /** To take part in the WireGuard network of the domain. */
    wireguard: Type.Optional(WireguardRequest),
  },
  closed,
)
export type EnrollRequest = Static<typeof EnrollRequest>

/** What this plane understands in requests. Every agent gets the list, so that a newer one sends nothing that an older plane refuses. */
export const understoodFields: readonly string[] = [
  ...Object.keys(EnrollRequest.properties),
  // Not fields of an enrollment, but of the calls and frames an enrolled agent makes.
  'counter',
  'evidence',
  'report',
  // `recovery` of a renewal.
  'renewal_recovery',
  // `replaces` in it.
  'recovery_replaces',
  // Of a recovery.
  'sighting',
  // The failure class, in a recovery and in reports.
  'credentials_damaged',
  // Of a renewal and a recovery.
  'issuer_roots',
]

/** `outside_roots` of a request for a leaf of a program. Said once every replica knows it: the request may reach another. */
export const outsideRootsField = 'outside_roots'

/** Agents take fields they do not know: a newer plane may say more. Hence no `closed` on answers. */
export const EnrollResponse = Type.Object({
  node_id: Type.String(),
  domain: Type.String(),
  epoch: Type.Integer(),
  /** PEM: the leaf, then its issuers, without the root. */
  certificate_chain: Type.String(),
  /** PEM, one certificate each: what the plane's server certificate is verified by from now on. */
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
  ...certificateExtras,
})
export type EnrollResponse = Static<typeof EnrollResponse>

export const enrollApi = {
  enroll: endpoint({
    method: 'POST',
    path: '/v1/enroll',
    access: 'anyone',
    summary: 'Proves a token or a hardware identity, and gets a certificate',
    body: EnrollRequest,
    answer: EnrollResponse,
    example: {
      request: {
        method: 'token',
        enrollment_token: 'enroll_(43 characters)',
        hardware_identity: { macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: null },
        hardware_facts: { cpu_cores: 64, memory_bytes: 549_755_813_888, disk_bytes: 3_840_755_982_336, arch: 'x64' },
        csr: '-----BEGIN CERTIFICATE REQUEST-----\n(PKCS#10, signed by its own key)\n-----END CERTIFICATE REQUEST-----\n',
      },
    },
  }),
}
