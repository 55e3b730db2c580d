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
      const { entries, heads } = verification
      const shown = heads.map(({ chain, sequence, hash, keyId }) => ({ chain, sequence, hash, key_id: keyId }))
      return { intact: true, entries, heads: shown, broken: null }
    }
    case 'broken': {
      const { entries, chain, from, to, why } = verification
      return { intact: false, entries, heads: [], broken: { chain, from, to, why } }
    }
  }
}
