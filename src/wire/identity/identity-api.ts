// How a node keeps its identity: the challenge it proves a key on, confirming, renewing, and what every answer with a
// certificate says.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, NodeParams, text } from '#wire/core/shapes.ts'
import { longestStatement } from '#wire/core/statement.ts'

export const EndpointSet = Type.Object({
  id: Type.String(),
  revision: Type.Integer(),
  runtime: Type.Array(Type.String()),
  stream: Type.Array(Type.String()),
  /** Left out by planes that have no recovery listener. */
  recovery: Type.Optional(Type.Array(Type.String())),
})
export type EndpointSet = Static<typeof EndpointSet>

/** What an agent needs to know of its profile. */
export const AgentProfile = Type.Object({
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

export const IssuerRootsRevision = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
/** So many, and so many characters in all: a frame of the channel has to take them. */
export const mostIssuerRoots = 32
export const longestIssuerRoots = 48_000

/**
 * What certificates of nodes hang under besides the root of the domain: for those who verify nodes, and trusted for no server. A set replaces
 * the one before it whole. Revision 0: there are none.
 */
export const IssuerRoots = Type.Object({
  revision: IssuerRootsRevision,
  /** PEM, one certificate each. */
  roots: Type.Array(Type.String({ maxLength: 32 * 1024 }), { maxItems: mostIssuerRoots }),
})
export type IssuerRoots = Static<typeof IssuerRoots>

/** What else every answer with a certificate says. Left out by planes that know no recovery. */
export const certificateExtras = {
  /** PEM: the root above the certificate. Not for verifying the plane: that is `roots`. Left out by planes before 0.4. */
  certificate_root: Type.Optional(Type.String({ maxLength: 32 * 1024 })),
  /** Key identifiers of authorities that are no longer trusted; left out where there are none. */
  withdrawn_issuers: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 })),
  /** Left out where there are none, and by planes before 0.7. */
  issuer_roots: Type.Optional(IssuerRoots),
  counter: Type.Optional(Type.String({ maxLength: longestStatement })),
  recovery_trust: Type.Optional(RecoveryTrust),
  /** The next bearer token, in compatibility mode; the one before is worth nothing once the certificate is used. */
  recovery_token: Type.Optional(Type.String({ maxLength: 256 })),
  /** False: the plane has no recovery credential of this node any more. */
  recovery_registered: Type.Optional(Type.Boolean()),
  /** SHA-256 of the recovery key that is registered, hex; left out where there is none, and by planes before 0.6. */
  recovery_key: Type.Optional(Type.String({ maxLength: 64 })),
  clock_tolerance_ms: Type.Optional(Type.Integer()),
}

/** A signature, base64url. */
export const proof = Type.String({ pattern: '^[A-Za-z0-9_-]{64,256}$' })

/** How a node says by what it will recover: at its enrollment, at a renewal, at a recovery. */
export const RecoveryRegistration = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('key'),
      /** SubjectPublicKeyInfo, DER, base64. */
      public_key: Type.String({ minLength: 32, maxLength: 1024 }),
      challenge: Type.String({ minLength: 1, maxLength: longestStatement }),
      proof,
      /**
       * In a renewal: the key that it takes the place of, and the proof of that key. Without it a key is registered only for a node that
       * has none. Planes before 0.6 refuse it.
       */
      replaces: Type.Optional(
        Type.Object({ public_key: Type.String({ minLength: 32, maxLength: 1024 }), proof }, closed),
      ),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal('bearer') }, closed),
])
export type RecoveryRegistration = Static<typeof RecoveryRegistration>

/**
 * How a machine that enrolls again proves the key of the certificate it has, where that certificate cannot be used (ruling 23). The
 * challenge is made for its node; the proof is over the request and the counter that came with the certificate.
 */
export const IdentityProof = Type.Object(
  {
    /** SubjectPublicKeyInfo, DER, base64. */
    public_key: Type.String({ minLength: 32, maxLength: 1024 }),
    challenge: Type.String({ minLength: 1, maxLength: longestStatement }),
    counter: Type.String({ minLength: 1, maxLength: longestStatement }),
    proof,
  },
  closed,
)
export type IdentityProof = Static<typeof IdentityProof>

const nonce = Type.String({ pattern: '^[A-Za-z0-9_-]{22,64}$' })

/** `POST /v1/challenge`, on both listeners. Answered for any name, so that anonymous callers do not learn which nodes exist. */
export const ChallengeRequest = Type.Object({ nonce, node_id: Type.Optional(NodeIdText) }, closed)
export type ChallengeRequest = Static<typeof ChallengeRequest>
export const ChallengeResponse = Type.Object({ challenge: Type.String({ maxLength: longestStatement }) })

/** `POST /v1/nodes/{id}/renew` */
export const RenewRequest = Type.Object(
  {
    csr: text(16_384),
    counter: Type.Optional(text(longestStatement)),
    /** From a node with nothing registered, to a plane that understands `renewal_recovery`. */
    recovery: Type.Optional(RecoveryRegistration),
    /** The revision of the roots of issuers that the agent has on its disk; to a plane that understands it. */
    issuer_roots: Type.Optional(IssuerRootsRevision),
  },
  closed,
)
export type RenewRequest = Static<typeof RenewRequest>

export const RenewResponse = Type.Object({
  certificate_chain: Type.String(),
  /** PEM, one certificate each: what the plane's server certificate is verified by from now on. */
  roots: Type.Array(Type.String()),
  profile: AgentProfile,
  endpoints: EndpointSet,
  server_time: Type.String(),
  /** As at enrollment: the plane may have been upgraded since. Older planes leave it out. */
  understands: Type.Optional(Type.Array(Type.String())),
  ...certificateExtras,
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

/** On both listeners for machines, which answer it alike. */
export const challengeApi = {
  challenge: endpoint({
    method: 'POST',
    path: '/v1/challenge',
    access: 'anyone',
    summary: 'A signed statement of the time, to prove a recovery key on',
    body: ChallengeRequest,
    answer: ChallengeResponse,
    example: {
      request: { nonce: 'q0J0c2o4w5t6u7i8o9p0aA', node_id: 'gpu-001' },
      answer: { challenge: 'challenge1.(canonical JSON).(signature)' },
    },
  }),
}

export const identityApi = {
  confirm: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/confirm',
    access: 'node-itself',
    inQuarantine: true,
    summary: 'Says that the certificate works, and whether it could be kept',
    params: NodeParams,
    body: ConfirmRequest,
    answer: ConfirmResponse,
    example: { request: { persisted: true } },
  }),
  renew: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/renew',
    access: 'node-itself',
    summary: 'Gets the next certificate, for a new key',
    params: NodeParams,
    body: RenewRequest,
    answer: RenewResponse,
    example: {
      request: { csr: '-----BEGIN CERTIFICATE REQUEST-----\n(for a new key)\n-----END CERTIFICATE REQUEST-----\n' },
    },
  }),
  channel: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/channel',
    access: 'node-itself',
    inQuarantine: true,
    kind: 'upgrade',
    summary: 'Becomes the channel: a WebSocket with the subprotocol muster.v1',
    params: NodeParams,
  }),
}
