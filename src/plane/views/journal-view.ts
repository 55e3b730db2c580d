import type { Static } from 'typebox'
import type { StoredEntry, Verification } from '#plane/store/store.ts'
import type { EntryView, VerifyAnswer } from '#wire/operator-api.ts'

export const entryView = ({ cursor, hash, bytes }: StoredEntry): Static<typeof EntryView> => ({
  cursor,
  hash,
  entry: JSON.parse(bytes) as Record<string, unknown>,
})

export const verificationView = (verification: Verification): Static<typeof VerifyAnswer> => {
  switch (verification.kind) {
    case 'intact': {
      const { entries, head } = verification
      const shown = head === null ? null : { sequence: head.sequence, hash: head.hash, key_id: head.keyId }
      return { intact: true, entries, head: shown, broken: null }
    }
    case 'broken': {
      const { entries, from, to, why } = verification
      return { intact: false, entries, head: null, broken: { from, to, why } }
    }
  }
}
