// What a recovery key signs. It never gets a certificate and is worth nothing at any other address.

import { sha256Hex } from '#platform/bytes.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import type { RecoverRequest } from '#wire/recovery/recovery-api.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import type { RecoveryKey } from '#agent/state/credentials.ts'

/** Instead of what is not there. */
const nothing = '-'

/** Registers the key at an enrollment, whose node may have no name yet, or with a repair bundle. */
export const registrationOf = (
  key: RecoveryKey,
  about: { readonly node: string | null; readonly challenge: string; readonly csrPem: string },
): RecoveryRegistration => {
  const { sign, spki } = loadPrivateKey(key.keyPem)
  const bytes = recoveryProofBytes({
    purpose: 'register',
    node: about.node ?? nothing,
    challenge: about.challenge,
    csrHash: sha256Hex(about.csrPem),
    counter: nothing,
  })
  return {
    kind: 'key',
    public_key: Buffer.from(spki).toString('base64'),
    challenge: about.challenge,
    proof: Buffer.from(sign(bytes)).toString('base64url'),
  }
}

/** `csrPem` null: a rehearsal. */
export const keyCredential = (
  key: RecoveryKey,
  about: {
    readonly node: string
    readonly challenge: string
    readonly csrPem: string | null
    readonly counter: string | null
  },
): RecoverRequest['credential'] => {
  const bytes = recoveryProofBytes({
    purpose: about.csrPem === null ? 'rehearse' : 'recover',
    node: about.node,
    challenge: about.challenge,
    csrHash: about.csrPem === null ? nothing : sha256Hex(about.csrPem),
    counter: about.counter ?? nothing,
  })
  const proof = Buffer.from(loadPrivateKey(key.keyPem).sign(bytes)).toString('base64url')
  return { kind: 'key', challenge: about.challenge, proof }
}
