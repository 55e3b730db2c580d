// Which keys get a certificate, whichever way they are brought.

import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import type { KeyInRequest } from './node-certificate.ts'
import type { Recovery } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type KeyFacts = {
  readonly keyBan: Row<KeyBan> | null
  readonly profile: Row<Profile>
  /** What is registered. */
  readonly recovery: Recovery | null
  /** What is asked to be registered with it. */
  readonly register: RecoveryRegistrationFacts | null
}

export const keyUnfit = ({ keyBan, profile, recovery, register }: KeyFacts, key: KeyInRequest): Refusal | null => {
  if (keyBan !== null) return refuse('KEY_BLOCKED')
  const recoveryKeys = [recovery?.credential, register].map((one) => (one?.kind === 'key' ? one.spki : null))
  if (recoveryKeys.includes(key.spkiHash)) {
    return refuse('CSR_INVALID', 'a recovery key is never certified: it has to be another key')
  }
  const allowed = profile.value.certificate.keyTypes
  if (allowed.includes(key.keyType)) return null
  return refuse('CSR_INVALID', `profile ${profile.value.name} allows keys of type ${allowed.join(', ')}`)
}
