// What a recovery key signs, which never gets a certificate and is worth nothing at any other address; and what the key of a
// certificate signs where the certificate itself cannot be used.

import { sha256Hex } from '#platform/bytes.ts'
import { loadPrivateKey, spkiHash } from '#pki/keys.ts'
import type { IdentityProof, RecoveryRegistration } from '#wire/identity/identity-api.ts'
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

/** Registers `key` in the place of `former`, which signs that. */
export const replacementOf = (
  key: RecoveryKey,
  former: RecoveryKey,
  about: { readonly node: string; readonly challenge: string; readonly csrPem: string },
): RecoveryRegistration => {
  const registration = registrationOf(key, about)
  const { sign, spki } = loadPrivateKey(former.keyPem)
  const { node, challenge, csrPem } = about
  const counter = recoveryKeyId(key)
  const bytes = recoveryProofBytes({ purpose: 'replace', node, challenge, csrHash: sha256Hex(csrPem), counter })
  const replaces = {
    public_key: Buffer.from(spki).toString('base64'),
    proof: Buffer.from(sign(bytes)).toString('base64url'),
  }
  return registration.kind === 'key' ? { ...registration, replaces } : registration
}

/** As the plane names it. */
export const recoveryKeyId = ({ keyPem }: RecoveryKey): string => spkiHash(loadPrivateKey(keyPem).spki)

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

/** Proves the key of the certificate that the machine has, at an enrollment (ruling 23). */
export const identityProofOf = (
  keyPem: string,
  about: { readonly node: string; readonly challenge: string; readonly csrPem: string; readonly counter: string },
): IdentityProof => {
  const { node, challenge, csrPem, counter } = about
  const { sign, spki } = loadPrivateKey(keyPem)
  const bytes = recoveryProofBytes({ purpose: 'prove', node, challenge, csrHash: sha256Hex(csrPem), counter })
  const proof = Buffer.from(sign(bytes)).toString('base64url')
  return { public_key: Buffer.from(spki).toString('base64'), challenge, counter, proof }
}
