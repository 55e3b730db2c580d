// The MAC of operator keys. Write access to the database must not be enough to make an operator: a row counts only with a
// MAC under a key that is derived from the sealing key, which the database does not have. All replicas have the same
// sealing key, and a domain that is exported keeps it.

import type { OperatorKey } from '#domain/core/principal.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import type { SealingKey } from './seal.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import { sameBytes, sha256Hex } from '#platform/bytes.ts'

/** `domainName` is asked each time: a first start decides it after the store is open. */
export const openKeySeal = (sealing: Pick<SealingKey, 'mac'>, domainName: () => string): KeySeal => {
  const macOf = (key: OperatorKey): string => {
    const { id, name, role, hash, createdBy, createdAtMs, revokedAtMs, expiresAtMs } = key
    // A key without an end has the MAC that releases before 0.5 made. One with an end has another as soon as that is changed or left out.
    const end = (expiresAtMs ?? null) === null ? {} : { expiresAtMs }
    const covered = { id, name, role, hash, createdBy, createdAtMs, revokedAtMs, ...end }
    return sealing.mac('operator key', canonicalJson({ domain: domainName(), ...covered }))
  }
  return {
    seal: (key) => ({ ...key, mac: macOf(key) }),
    // Of the hash, not of the key: a reader of the journal does not learn the hash by which the row is found.
    fingerprint: ({ hash }) => `SHA256:${sha256Hex(hash)}`,
    isSealed: (key) =>
      typeof key.mac === 'string' && sameBytes(Buffer.from(key.mac, 'utf8'), Buffer.from(macOf(key), 'utf8')),
  }
}
