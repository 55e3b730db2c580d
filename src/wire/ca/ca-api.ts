// The certificate authority, as those who look after it see it and withdraw it.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, deprecated, EmptyRequest, oneOf, text } from '#wire/core/shapes.ts'

/** `sha256:` and 64 hexadecimal digits. */
const RootFingerprint = Type.String()
const OldRootFingerprint = Type.Optional(deprecated(Type.String(), { use: 'root' }))

export const CaView = Type.Object({
  domain: Type.String(),
  root: RootFingerprint,
  root_fingerprint: OldRootFingerprint,
  root_online: Type.Boolean(),
  /** False: the sealing key is stored next to the keys it seals, or other users can read it. */
  sealing_protected: Type.Boolean(),
  authorities: Type.Array(
    Type.Object({
      id: Type.String(),
      role: oneOf([
        ...([
          'root',
          'domain-ca',
          'issuing',
          'recovery',
          'programs-root',
          'programs-issuing',
          'workers-issuing',
        ] as const),
        ...(['outside-root', 'outside-issuing', 'renewal-root'] as const),
      ]),
      custody: oneOf(['file', 'memory', 'offline', 'pkcs11', 'transit']),
      subject: Type.String(),
      not_before: Type.String(),
      not_after: Type.String(),
      signing: Type.Boolean(),
      fingerprint: Type.String(),
      sha256: Type.Optional(deprecated(Type.String(), { use: 'fingerprint' })),
      /** When it was withdrawn because its key may be compromised: nothing it has signed is accepted since. */
      withdrawn_at: Type.Optional(Type.String()),
    }),
  ),
  server_certificate: Type.Object({
    serial: Type.String(),
    not_after: Type.String(),
    names: Type.Array(Type.String()),
  }),
  warnings: Type.Array(Type.String()),
})
export type CaView = Static<typeof CaView>
/** `workers`: for the authority of workers. A plane before 0.6 does not know it. */
export const CaRequestRequest = Type.Object({ workers: Type.Optional(Type.Boolean()) }, closed)
export const CaRequestAnswer = Type.Object({ csr: Type.String() })
export const CaImportRequest = Type.Object({ certificate: text(16_384) }, closed)
export const CaBundleAnswer = Type.Object({
  roots: Type.Array(Type.String()),
  root: RootFingerprint,
  root_fingerprint: OldRootFingerprint,
  /** The roots of programs, for those who verify programs and no node. None before the first output; left out by older planes. */
  programs: Type.Optional(Type.Array(Type.String())),
  /** PEM of the keys that sign statements, for hosts whose helper pins them. The first signs. Left out by planes before 0.6. */
  statement_keys: Type.Optional(Type.Array(Type.String())),
  /** A join string without a secret, for machines that join by their hardware. */
  join: Type.String(),
})

/** `POST /v1/ca/withdraw` */
export const WithdrawRequest = Type.Object(
  {
    /** As `GET /v1/ca` names it. */
    issuer: Type.String({ pattern: '^[0-9a-f]{1,64}$' }),
    reason: Type.String({ minLength: 1, maxLength: 256 }),
  },
  { additionalProperties: false },
)
export type WithdrawRequest = Static<typeof WithdrawRequest>

export const WithdrawAnswer = Type.Object({
  /** It and what was below it; none: it was withdrawn before. */
  withdrawn: Type.Array(Type.String()),
  /** What takes their place on this plane. */
  successors: Type.Array(Type.String()),
  /** On this plane; the others cut theirs when the commit reaches them. */
  channels_cut: Type.Integer(),
  ca: CaView,
})
export type WithdrawAnswer = Static<typeof WithdrawAnswer>

/** `GET /v1/bundle` */
export const BundleResponse = Type.Object({
  domain: Type.String(),
  roots: Type.Array(Type.String()),
  root_fingerprint: Type.String(),
  /** The roots of programs, which no agent trusts for a plane. Left out by older planes. */
  programs: Type.Optional(Type.Array(Type.String())),
  server_time: Type.String(),
})

export const caApi = {
  show: endpoint({
    method: 'GET',
    path: '/v1/ca',
    access: 'viewer',
    summary: 'The authorities on record, and what to worry about',
    answer: CaView,
  }),
  rotate: endpoint({
    method: 'POST',
    path: '/v1/ca/rotate',
    access: 'platform-admin',
    summary: 'A new issuing CA from now on',
    body: EmptyRequest,
    answer: CaView,
  }),
  withdraw: endpoint({
    method: 'POST',
    path: '/v1/ca/withdraw',
    access: 'platform-admin',
    summary: 'Withdraws an authority whose key may be compromised: nothing it has signed is accepted any more',
    cutOff: true,
    body: WithdrawRequest,
    answer: WithdrawAnswer,
  }),
  request: endpoint({
    method: 'POST',
    path: '/v1/ca/request',
    access: 'platform-admin',
    summary: 'A request for an intermediate, to be carried to the offline root',
    body: CaRequestRequest,
    answer: CaRequestAnswer,
  }),
  importIssued: endpoint({
    method: 'POST',
    path: '/v1/ca/import',
    access: 'platform-admin',
    summary: "Takes the root's answer to that request into service",
    body: CaImportRequest,
    answer: CaView,
  }),
  bundle: endpoint({
    method: 'GET',
    path: '/v1/ca/bundle',
    access: 'viewer',
    summary: 'The roots that nodes are given',
    answer: CaBundleAnswer,
  }),
}

/** On the node listener: without a credential, so without anything but what a certificate of a root says anyway. */
export const bundleApi = {
  bundle: endpoint({
    method: 'GET',
    path: '/v1/bundle',
    access: 'anyone',
    summary: 'The roots of this domain',
    answer: BundleResponse,
  }),
}
