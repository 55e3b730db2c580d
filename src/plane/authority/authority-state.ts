// What the parts of the built-in authority share: what it works with, and what it holds in memory.

import type { Tries } from '#plane/core/commit-decision.ts'
import { signerFrom, type CaSigner } from './ca-signer.ts'
import { bookOf, type IssuerBook } from './issuer-book.ts'
import { longestLeaf } from './issuer-life.ts'
import { newKey, type NewKey } from './new-key.ts'
import type { NewKeyPlace } from '#plane/keys/key-reference.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import type { ProgramsTrust } from './programs-authority.ts'
import type { WorkersTrust } from './workers-authority.ts'
import type { RecoveryAuthority } from './recovery-authority.ts'
import type { HeldServerCertificate, ServerCertificateParts } from './server-identity.ts'
import type { Core } from '#plane/core/core.ts'
import { UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'

export type AuthorityOptions = {
  readonly domain: string
  /** `memory`: the key that signs leaves is made at every start and never written; each replica has its own. */
  readonly issuerKey: 'file' | 'memory'
  /** Where the keys of new CAs are made that are kept; left out or null: they are sealed here. */
  readonly caKeyPlace?: NewKeyPlace | null
  /** Where those of new OCSP responders are made, but for issuers in memory; left out or null: they are sealed here. */
  readonly responderKeyPlace?: NewKeyPlace | null
  readonly intermediateLifetimeMs: number
  readonly serverLifetimeMs: number
  /** Where others find the status listener; what is signed says so. Left out: nowhere. */
  readonly statusUrl?: string | null
}

export type AuthorityParts = {
  readonly core: Omit<Core, 'timers'>
  readonly custody: KeyCustody
  readonly names: ServerCertificateParts['names']
  /** What operators are shown of the other trust; none of it signs anything here. */
  readonly recovery: Pick<RecoveryAuthority, 'storedRoots' | 'warnings'>
  readonly programs: ProgramsTrust
  readonly workers: WorkersTrust
  readonly options: AuthorityOptions
}

/** Changed only in turns (core/turns.ts), but for reading. */
export type AuthorityState = {
  book: IssuerBook
  rootOnline: boolean
  /** Signs leaves now. Null: nothing can. */
  signer: CaSigner | null
  server: HeldServerCertificate | null
  /** The longest lifetime any leaf is to have, the plane's own included. */
  longestLeafMs: number
  /** Was made elsewhere for a CA that could not be signed then. */
  spareKey: { readonly role: 'domain-ca' | 'issuing'; readonly key: NewKey } | null
  /** When aging authorities were last journaled; null before it was looked up. */
  agingJournaledAtMs: number | null
}

/** The book of authorities is small and seldom changes. Five lost races mean that something is wrong with it. */
export const bookTries: Tries<never> = {
  tries: 5,
  onBusy() {
    throw new Error(`the authorities in the store kept changing: gave up after ${bookTries.tries} attempts`)
  },
}

/** The CA that would sign a new one of this role, or null where its key is not here or it has ended. */
export const signerAbove = (
  { core: { clock }, custody, options }: AuthorityParts,
  book: IssuerBook,
  role: 'domain-ca' | 'issuing',
): CaSigner | null => {
  const above = role === 'issuing' && options.issuerKey === 'memory' ? book.domainCa : book.root
  if (above === null || above.notAfterMs <= clock.nowMs()) return null
  return signerFrom(custody, above)
}

/** The key of a new CA, which is kept. A replica of the release before could not use one that is elsewhere, nor start with it. */
export const newCaKey = async (
  { core, custody, options }: KeyMakingParts,
  role: 'domain-ca' | 'issuing',
): Promise<NewKey> => {
  const place = options.caKeyPlace ?? null
  if (place !== null && core.store.unfinishedUpgrade() !== null)
    throw new UpgradeUnfinished('the key of a CA in a token or in Transit is new in this release')
  return newKey(place, role, { elsewhere: custody.elsewhere, random: core.random })
}

/** The key above may be in a token that lies in a safe, and nothing removes a key from a token: what was made for an attempt is used by the next one. */
export const caKeyFor = async (
  parts: KeyMakingParts,
  state: Pick<AuthorityState, 'spareKey'>,
  role: 'domain-ca' | 'issuing',
): Promise<NewKey> => {
  if (state.spareKey?.role === role) return state.spareKey.key
  const key = await newCaKey(parts, role)
  if (key.custody !== 'file') state.spareKey = { role, key }
  return key
}

type KeyMakingParts = Pick<AuthorityParts, 'core' | 'custody'> & {
  readonly options: Pick<AuthorityOptions, 'caKeyPlace'>
}

/** What other replicas change too: the root, the CAs below it and their keys, but for an issuer in memory. */
export const isShared = ({ core: { store }, options }: AuthorityParts, role: 'domain-ca' | 'issuing'): boolean =>
  store.sealedKeys !== null && !(role === 'issuing' && options.issuerKey === 'memory')

export const longestLeafNow = (
  { core: { clock }, options }: AuthorityParts,
  { book, rootOnline }: AuthorityState,
): number =>
  longestLeaf({
    nowMs: clock.nowMs(),
    intermediateLifetimeMs: options.intermediateLifetimeMs,
    root: { notBeforeMs: book.root.notBeforeMs, notAfterMs: book.root.notAfterMs, online: rootOnline },
    issuing: book.issuing,
    domainCa: options.issuerKey === 'memory' ? book.domainCa : null,
  })

/** Reads the authorities as they are now: other replicas over the same store replace what they share. */
export const lookAgain = async (parts: AuthorityParts, state: AuthorityState): Promise<void> => {
  // In this order: a key is kept before the book names it, so every key that the book names can be found.
  await readBook(parts, state)
  await parts.custody.refresh()
  state.rootOnline = parts.custody.has({ role: 'root', id: state.book.root.id })
  reopenSigner(parts, state)
}

export const readBook = async (parts: Pick<AuthorityParts, 'core'>, state: AuthorityState): Promise<void> => {
  state.book = bookOf(await parts.core.store.issuers())
}

const reopenSigner = ({ custody, options }: AuthorityParts, state: AuthorityState): void => {
  const { book, signer } = state
  const stored = signer === null ? null : book.find(signer.row.id)
  if (stored !== null && stored.value.compromisedAtMs !== null) state.signer = null
  if (options.issuerKey === 'memory') {
    // Another plane was asked for new ones everywhere.
    if (stored !== null && stored.value.retiredAtMs !== null) state.signer = null
  } else if (book.issuing !== null && book.issuing.id !== signer?.row.id) {
    // What is retired may still sign; where the key of its successor is not here, it does.
    state.signer = signerFrom(custody, book.issuing) ?? state.signer
  }
}
