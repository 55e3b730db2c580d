// What ends a session of the agent with the identity it has, and what the plane's refusals mean for it.

import type { Trouble } from './trouble.ts'

export type SessionEnd =
  | { readonly kind: 'stopped' }
  /** The plane does not take this identity any more; another way in may work. */
  | {
      readonly kind: 'rejoin'
      readonly trouble: Trouble
      /** The slot the plane named, where many are sent away in the same moment; 0: at once. */
      readonly afterMs: number
    }
  | { readonly kind: 'revoked'; readonly trouble: Trouble }

/** `slow`: only an operator can change it, so there is no hurry. `unknown-certificate`: the one before may still do. */
export type RefusedUse = 'soon' | 'slow' | 'unknown-certificate' | 'rejoin' | 'revoked'

export const afterRefusedUse = (code: string): RefusedUse => {
  switch (code) {
    case 'NODE_REVOKED':
      return 'revoked'
    case 'REJOIN_REQUIRED':
    case 'CLIENT_CERT_EXPIRED':
    case 'CLIENT_CERT_DENIED':
    case 'ISSUER_WITHDRAWN':
    case 'NODE_NOT_ENROLLED':
    // There is a newer certificate and we do not have it: recovery says whether it is ours, or somebody else's.
    case 'SERIAL_MISMATCH':
      return 'rejoin'
    case 'CLIENT_CERT_UNKNOWN':
      return 'unknown-certificate'
    case 'NODE_QUARANTINED':
    case 'APPROVAL_REQUIRED':
    case 'LINEAGE_CONFLICT':
    case 'DUPLICATE_IDENTITY':
    case 'IDENTITY_MISMATCH':
    case 'NODE_STATE_CONFLICT':
    case 'NODE_NOT_FOUND':
      return 'slow'
    default:
      return 'soon'
  }
}
