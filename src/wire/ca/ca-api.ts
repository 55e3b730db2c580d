// The certificate authority, as those who look after it see it.

import { Type, type Static } from 'typebox'
import { closed, oneOf, text } from '#wire/core/shapes.ts'

export const CaView = Type.Object({
  domain: Type.String(),
  root_fingerprint: Type.String(),
  root_online: Type.Boolean(),
  /** False: the sealing key lies beside what it seals, or others may read it. */
  sealing_protected: Type.Boolean(),
  authorities: Type.Array(
    Type.Object({
      id: Type.String(),
      role: oneOf(['root', 'domain-ca', 'issuing', 'recovery']),
      custody: oneOf(['file', 'memory', 'offline']),
      subject: Type.String(),
      not_before: Type.String(),
      not_after: Type.String(),
      signing: Type.Boolean(),
      sha256: Type.String(),
      /** Somebody else may have its key: since then nothing it has signed is taken. */
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
export const CaRequestAnswer = Type.Object({ csr: Type.String() })
export const CaImportRequest = Type.Object({ certificate: text(16_384) }, closed)
export const CaBundleAnswer = Type.Object({
  roots: Type.Array(Type.String()),
  root_fingerprint: Type.String(),
  /** A join string without a secret, for machines that join by their hardware. */
  join: Type.String(),
})
