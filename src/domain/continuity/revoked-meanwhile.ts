// What was taken away while a store was in doubt. If the newer store is put back, it knows nothing of it.

import type { WantedAlert } from '#domain/alerts/alert-decisions.ts'
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

const mostNamed = 5

/** `meanwhile`: null where nobody wrote it down. Nothing but an acknowledgement ends the alert. */
export const putBackAlert = (domain: string, meanwhile: readonly string[] | null, file: string): WantedAlert => {
  const named = (meanwhile ?? []).slice(0, mostNamed).join('; ')
  const more = (meanwhile ?? []).length - mostNamed
  const what =
    meanwhile === null
      ? 'what was revoked meanwhile is not in it: revoke it again'
      : meanwhile.length === 0
        ? 'nothing on record was revoked meanwhile'
        : `what was revoked meanwhile is not in it: ${named}${more > 0 ? `; and ${more} more` : ''}. Revoke it again`
  return {
    kind: 'store_put_back',
    subject: domain,
    node: null,
    severity: meanwhile?.length === 0 ? 'warning' : 'critical',
    reason: `the store holds the commits again that it had lost, and is not in doubt any more; ${what}. The record is kept as ${file}`,
    sinceMs: null,
  }
}
