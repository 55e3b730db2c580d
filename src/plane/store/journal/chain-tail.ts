// The end of a chain, where entries are added: what they are chained to, and whether the last entry has a valid head of ours.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Log } from '#platform/log.ts'
import { chainedHash, entryBytes, genesisHash, placeEntry, scarredHash, signedBytes } from './journal-chain.ts'
import type { ChainPlace, EncodedDraft } from './journal-chain.ts'
import type { BaseRow } from './journal-chain.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'

/** `chainTo` is the hash of `place`, but for a scar. */
export type Tail = { readonly place: ChainPlace; readonly chainTo: Uint8Array }

export type PlacedEntry = { readonly entry: JournalEntry; readonly bytes: string; readonly hash: Uint8Array }

export const newBase = (signer: HeadSigner, chain: string, domain: string): BaseRow => {
  const { keyId } = signer
  const place = { chain, sequence: 0, hash: genesisHash(chain, domain) }
  return { ...place, domain, signature: signer.sign(signedBytes('base', place, keyId)), keyId }
}

export const tailAtBase = ({ chain, sequence, hash }: BaseRow): Tail => ({
  place: { chain, sequence, hash },
  chainTo: hash,
})

/** Every group commits its entries and its signed head together, so an unsigned end was not left by us. */
export const tailAt = (
  log: Log,
  signer: HeadSigner,
  place: ChainPlace,
  signed: { readonly signature: Uint8Array | null; readonly keyId: string | null } | null,
): Tail => {
  const signature = signed?.signature ?? null
  const keyId = signed?.keyId ?? null
  const proven = signature !== null && keyId !== null && signer.verify(signedBytes('head', place, keyId), signature)
  if (proven) return { place, chainTo: place.hash }
  const { chain, sequence, hash } = place
  log.error({ chain, sequence }, 'the end of the journal carries no signature of ours; see: muster journal verify')
  return { place: { chain, sequence, hash }, chainTo: scarredHash(hash) }
}

export const extendChain = (
  tail: Tail,
  drafts: readonly EncodedDraft[],
  of: { readonly domain: string; readonly commit: string },
): { readonly placed: readonly PlacedEntry[]; readonly tail: Tail } => {
  let now = tail
  const placed = drafts.map(({ draft, body }, index) => {
    const { chain } = now.place
    const sequence = now.place.sequence + 1
    const entry = placeEntry(draft, { chain, sequence, ...of, index })
    const bytes = entryBytes(entry, body)
    const hash = chainedHash(now.chainTo, bytes)
    now = { place: { chain, sequence, hash }, chainTo: hash }
    return { entry, bytes, hash }
  })
  return { placed, tail: now }
}

export const headSignature = (signer: HeadSigner, { place }: Tail): Uint8Array =>
  signer.sign(signedBytes('head', place, signer.keyId))
