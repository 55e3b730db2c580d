// Replaces authorities that are due, as far as the keys to do so are here. Of several replicas the leader does so, or one
// that could not start otherwise; every replica replaces its own memory issuer.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { retryLostRaces } from '#plane/core/commit-decision.ts'
import {
  bookTries,
  caKeyFor,
  isShared,
  signerAbove,
  lookAgain,
  type AuthorityParts,
  type AuthorityState,
} from './authority-state.ts'
import { keepKey } from './ca-signer.ts'
import { authorityActor } from './issuer-book.ts'
import { isReplacementDue, memoryIssuerLifetimeMs } from './issuer-life.ts'
import { makeIntermediateWith, type Making } from './make-issuer.ts'
import { keyHere } from './new-key.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { dropOrphans, takeIntoService } from './take-into-service.ts'

export type Replacement = {
  readonly role: 'domain-ca' | 'issuing'
  /** What a memory issuer's own life is measured by. */
  readonly longestLeafMs: number
  readonly why: string
  readonly by: Attribution
  /** Asked again inside the exclusive section; null: it is wanted in any case. */
  readonly isDue: (() => boolean) | null
  /** Null: ordered by an operator, or required for the start. */
  readonly fencingToken: FencingToken | null
  /** Also instead of the issuers in the memory of other replicas, which then make new ones. */
  readonly everywhere: boolean
}

export const replaceIssuer = (
  parts: AuthorityParts,
  state: AuthorityState,
  wanted: Replacement,
): Promise<'replaced' | 'above-offline'> =>
  isOwn(parts, wanted)
    ? replace(parts, state, wanted)
    : parts.core.store.exclusively(() => replace(parts, state, wanted))

const isOwn = (parts: AuthorityParts, { role }: Replacement): boolean =>
  parts.core.store.sealedKeys !== null && !isShared(parts, role)

const replace = (
  parts: AuthorityParts,
  state: AuthorityState,
  wanted: Replacement,
): Promise<'replaced' | 'above-offline'> => {
  const { custody, options } = parts
  const { role, longestLeafMs, why } = wanted
  const inMemory = role === 'issuing' && options.issuerKey === 'memory'
  return retryLostRaces(bookTries, async () => {
    // An earlier commit may have failed without saying whether it is there, and another plane may have been quicker.
    await lookAgain(parts, state)
    if (wanted.isDue !== null && !wanted.isDue()) return 'replaced'
    // Only where no other plane can be between keeping a key and committing the row that names it.
    if (!isOwn(parts, wanted)) await dropOrphans(custody, state.book)
    const above = signerAbove(parts, state.book, role)
    if (above === null) return 'above-offline'
    const key = inMemory ? keyHere() : await caKeyFor(parts, state, role)
    const making: Making = {
      domain: options.domain,
      custody: inMemory ? 'memory' : key.custody,
      lifetimeMs: inMemory ? memoryIssuerLifetimeMs(longestLeafMs) : options.intermediateLifetimeMs,
      nowMs: parts.core.clock.nowMs(),
      random: parts.core.random,
    }
    const made = await makeIntermediateWith(key, role, above, making)
    state.spareKey = null
    await keepKey(custody, made)
    const outcome = await takeIntoService(parts, state, made, wanted)
    if (outcome === 'lost-race') return outcome
    parts.core.log.info({ issuer: made.row.id, role, why }, 'a new certificate authority is in service')
    return 'replaced'
  })
}

/**
 * From the top down. Where the key above is offline nothing happens here; the warnings say so. `left-to-leader`: something
 * is due that is another plane's to replace. At a start what is there will do for the moment.
 */
export const replaceWhatIsDue = async (
  parts: AuthorityParts,
  state: AuthorityState,
  longestLeafMs: number,
  when: 'starting' | 'running',
): Promise<'settled' | 'left-to-leader'> => {
  const fencingToken = parts.core.store.replicas.leadership()
  const due = { longestLeafMs, why: 'due', by: authorityActor, fencingToken, everywhere: false }
  const isLeft = (role: 'domain-ca' | 'issuing', isNeeded: boolean): boolean =>
    isShared(parts, role) && fencingToken === null && !(when === 'starting' && isNeeded)
  const domainCaDue = (): boolean => isDomainCaDue(parts, state, longestLeafMs)
  const issuingDue = (): boolean => isIssuingDue(parts, state, longestLeafMs)

  if (domainCaDue()) {
    if (isLeft('domain-ca', signerAbove(parts, state.book, 'issuing') === null)) return 'left-to-leader'
    const usable = (): IssuerRow | null => {
      const { domainCa } = state.book
      return domainCa !== null && parts.custody.has({ role: 'domain-ca', id: domainCa.id }) ? domainCa : null
    }
    await orGoOn(parts, usable, replaceIssuer(parts, state, { ...due, role: 'domain-ca', isDue: domainCaDue }))
  }
  if (issuingDue()) {
    const { signer } = state
    if (isLeft('issuing', signer === null || signer.row.notAfterMs <= parts.core.clock.nowMs())) return 'left-to-leader'
    const usable = (): IssuerRow | null => state.book.find(state.signer?.row.id ?? '')?.value ?? null
    await orGoOn(parts, usable, replaceIssuer(parts, state, { ...due, role: 'issuing', isDue: issuingDue }))
  }
  return 'settled'
}

/** The key above may be in a token that lies in a safe. What is in service goes on until it is there, as below an offline root. */
const orGoOn = async (
  { core: { clock, log } }: AuthorityParts,
  usable: () => IssuerRow | null,
  replacing: Promise<unknown>,
): Promise<void> => {
  try {
    await replacing
  } catch (error) {
    const row = usable()
    if (!isKeyUnavailable(error) || row === null || row.compromisedAtMs !== null || row.notAfterMs <= clock.nowMs())
      throw error
    log.warn({ err: error, issuer: row.id }, 'a certificate authority that is due could not be replaced: it signs on')
  }
}

const isDomainCaDue = (parts: AuthorityParts, state: AuthorityState, longestLeafMs: number): boolean => {
  if (parts.options.issuerKey !== 'memory' || !state.rootOnline) return false
  const { domainCa, root } = state.book
  if (domainCa === null || !parts.custody.has({ role: 'domain-ca', id: domainCa.id })) return true
  return isReplacementDue(domainCa, root, memoryIssuerLifetimeMs(longestLeafMs), parts.core.clock.nowMs())
}

const isIssuingDue = (parts: AuthorityParts, state: AuthorityState, longestLeafMs: number): boolean => {
  const { book, rootOnline, signer } = state
  const inMemory = parts.options.issuerKey === 'memory'
  const above = inMemory ? book.domainCa : rootOnline ? book.root : null
  if (above === null) return false
  if (signer === null || (inMemory && signer.row.parent !== above.id)) return true
  return isReplacementDue(signer.row, above, longestLeafMs, parts.core.clock.nowMs())
}
