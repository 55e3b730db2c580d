import type { Static } from 'typebox'
import type { Verified } from './journal-watch.ts'
import type { StoredEntry } from '#plane/store/contract/store.ts'
import { isoTime } from '#platform/clock.ts'
import type { EntryView, VerifyAnswer } from '#wire/api/operator-api.ts'

export const entryView = ({ cursor, hash, bytes }: StoredEntry): Static<typeof EntryView> => ({
  cursor,
  hash,
  entry: JSON.parse(bytes) as Record<string, unknown>,
})

export const verificationView = ({ journal, rows, finishedAtMs }: Verified): Static<typeof VerifyAnswer> => {
  const differences = rows.differences.map(({ row, subject, why, fence }) => ({
    ...{ row, subject, why },
    fenced: fence !== null,
  }))
  const compared = { nodes: rows.nodes, tokens: rows.tokens, differences, more: rows.more }
  const { entries } = journal
  const shared = { entries, rows: compared, verified_at: isoTime(finishedAtMs) }
  if (journal.kind === 'intact') {
    const heads = journal.heads.map(({ chain, sequence, hash, keyId }) => ({ chain, sequence, hash, key_id: keyId }))
    return { ...shared, intact: differences.length === 0, heads, broken: null }
  }
  const { chain, from, to, why } = journal
  return { ...shared, intact: false, heads: [], broken: { chain, from, to, why } }
}
