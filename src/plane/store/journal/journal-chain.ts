// How entries hang together: each hash covers its entry's bytes and the hash before it, and a signed head covers a hash.
// Pure, so that anyone with the public key can check a copy with these few functions alone.

import type { EntryDraft, JournalEntry } from '#domain/core/journal-entry.ts'
import { sha256 } from '#platform/bytes.ts'
import { canonicalJson } from './canonical-json.ts'

/** A place in a chain and the hash of everything up to it. */
export type ChainPlace = { readonly chain: string; readonly sequence: number; readonly hash: Uint8Array }

/** An entry as it is stored. `bytes` is the entry; the columns beside it only find it, and verification compares them. */
export type JournalRow = {
  readonly sequence: number
  readonly operation: string
  readonly bytes: string
  readonly hash: Uint8Array
  readonly signature: Uint8Array | null
  readonly keyId: string | null
  readonly node: string | null
  readonly type: string
}

/** Where the stored chain begins: at its genesis, or at a head before which everything was pruned. */
export type BaseRow = {
  readonly chain: string
  readonly domain: string
  readonly sequence: number
  readonly hash: Uint8Array
  readonly signature: Uint8Array
  readonly keyId: string
}

/** The hash before the first entry: a chain cannot be passed off as that of another domain. */
export const genesisHash = (chain: string, domain: string): Uint8Array =>
  sha256(canonicalJson({ chain, domain, purpose: 'muster journal genesis' }))

export const chainedHash = (previous: Uint8Array, bytes: string): Uint8Array =>
  sha256(Buffer.concat([previous, Buffer.from(bytes, 'utf8')]))

/**
 * What entries are chained to where the newest one had no valid signed head when the store opened. Continuing from its own hash
 * would put our next signature over a tail that another writer may have added.
 */
export const scarredHash = (unproven: Uint8Array): Uint8Array =>
  sha256(Buffer.concat([Buffer.from('muster journal scar\n'), unproven]))

/**
 * `head`: the newest entry of a group. `base`: where the stored chain begins. They differ, so that a user who can write the
 * database cannot cut off the front of the journal at some old head.
 */
export type SignedPurpose = 'head' | 'base'

/** What is signed. The key's id is part of it, so that a signature cannot be filed under another key. */
export const signedBytes = (purpose: SignedPurpose, place: ChainPlace, keyId: string): Uint8Array =>
  Buffer.from(
    canonicalJson({
      chain: place.chain,
      hash: hexOf(place.hash),
      keyId,
      purpose: `muster journal ${purpose}`,
      sequence: place.sequence,
    }),
    'utf8',
  )

/** What a commit gives its entries; the rest they bring along. */
export type EntryPlace = {
  readonly chain: string
  readonly sequence: number
  readonly domain: string
  readonly commit: string
  readonly index: number
}

export const placeEntry = (draft: EntryDraft, place: EntryPlace): JournalEntry => ({
  schema: 1,
  domain: place.domain,
  operation: `${place.commit}-${place.index}`,
  chain: place.chain,
  sequence: place.sequence,
  type: draft.type,
  atMs: draft.atMs,
  actor: draft.actor,
  source: draft.source,
  node: draft.node,
  epoch: draft.epoch,
  token: draft.token,
  issuer: draft.issuer,
  serial: draft.serial,
  correlation: draft.correlation ?? place.commit,
  body: draft.body,
})

/** A draft whose body already has its canonical form: made before the group, where a bad one fails no other member. */
export type EncodedDraft = { readonly draft: EntryDraft; readonly body: string }

/** The canonical JSON of an entry, spelled out: it is written for every commit, and sorting keys we know costs most. */
export const entryBytes = (entry: JournalEntry, body: string): string =>
  `{"actor":${text(entry.actor)},"atMs":${entry.atMs},"body":${body},"chain":${text(entry.chain)}` +
  `,"correlation":${text(entry.correlation)},"domain":${text(entry.domain)},"epoch":${entry.epoch}` +
  `,"issuer":${text(entry.issuer)},"node":${text(entry.node)},"operation":${text(entry.operation)}` +
  `,"schema":${entry.schema},"sequence":${entry.sequence},"serial":${text(entry.serial)}` +
  `,"source":${text(entry.source)},"token":${text(entry.token)},"type":${text(entry.type)}}`

const text = (value: string | null): string => JSON.stringify(value)

export const hexOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
