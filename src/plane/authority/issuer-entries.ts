// What the journal says of the life of a certificate authority.

import { entry, type Attribution } from '#domain/core/decision.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
import type { IssuerRecord } from '#domain/ca/issuer-record.ts'
import { fingerprint } from '#pki/fingerprint.ts'
import { isoTime } from '#platform/clock.ts'

/** What the plane does by itself. */
export const byItself: Attribution = { actor: 'system:authority', source: null, correlation: null }

export const issuerEntry = (
  type: 'ca.created' | 'ca.rotated' | 'ca.retired' | 'ca.compromised',
  record: IssuerRecord,
  by: Attribution,
  nowMs: number,
  more: EntryBody,
): EntryDraft =>
  entry(
    by,
    nowMs,
    type,
    { issuer: record.id },
    {
      role: record.role,
      custody: record.custody,
      parent: record.parent,
      fingerprint: `SHA256:${fingerprint(Buffer.from(record.der, 'base64'))}`,
      not_after: isoTime(record.notAfterMs),
      ...more,
    },
  )
