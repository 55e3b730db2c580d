// What was taken away while a store was in doubt. If the newer store is put back, it knows nothing of it.

import { boundedText } from '#domain/core/decision.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'

const verbs: Partial<Readonly<Record<EntryType, (entry: JournalEntry) => string>>> = {
  'host.revoked': ({ node }) => `node ${node} revoked`,
  'node.quarantined': ({ node }) => `node ${node} quarantined`,
  'node.recovery_denied': ({ node }) => `recovery of ${node} denied`,
  'enrollment_token.revoked': ({ token }) => `token ${token} revoked`,
  'operator_key.revoked': ({ body }) => `operator key ${String(body['key_id'])} revoked`,
  'issuance.halted': () => 'issuance halted',
  'ca.compromised': ({ issuer }) => `authority ${issuer} withdrawn`,
}

/** In words, for those entries that took something away. */
export const takenAway = (entries: readonly JournalEntry[]): readonly string[] =>
  entries.flatMap((entry) => {
    const say = verbs[entry.type]
    return say === undefined ? [] : [boundedText(say(entry), 96)]
  })
