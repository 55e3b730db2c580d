// Replaces authorities that are due, as far as the keys to do so are here.

import type { Attribution } from '#domain/decision.ts'
import { signerAbove, type AuthorityDeps, type AuthorityState } from './authority-state.ts'
import { keepKey } from './ca-signer.ts'
import { byItself } from './issuer-entries.ts'
import { isReplacementDue, memoryIssuerLifetimeMs } from './issuer-life.ts'
import { makeIntermediate } from './make-issuer.ts'
import { dropOrphans, readBook, takeIntoService } from './take-into-service.ts'

export type Replacement = {
  readonly role: 'domain-ca' | 'issuing'
  /** What a memory issuer's own life is measured by. */
  readonly longestLeafMs: number
  readonly why: string
  readonly by: Attribution
}

const mostAttempts = 5

export const replaceIssuer = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  { role, longestLeafMs, why, by }: Replacement,
): Promise<'replaced' | 'above-offline'> => {
  const { custody, options } = deps
  const inMemory = role === 'issuing' && options.issuerKey === 'memory'
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    // An earlier commit may have failed without saying whether it is there.
    await readBook(deps, state)
    dropOrphans(custody, state.book)
    const above = signerAbove(deps, state.book, role)
    if (above === null) return 'above-offline'
    const made = makeIntermediate(role, above, {
      domain: options.domain,
      custody: inMemory ? 'memory' : 'file',
      lifetimeMs: inMemory ? memoryIssuerLifetimeMs(longestLeafMs) : options.intermediateLifetimeMs,
      nowMs: deps.clock.nowMs(),
      random: deps.random,
    })
    keepKey(custody, made)
    if ((await takeIntoService(deps, state, made, { why, by })) === 'in-service') {
      deps.log.info({ issuer: made.record.id, role, why }, 'a new certificate authority is in service')
      return 'replaced'
    }
  }
  throw new Error(`the authorities on record kept changing: gave up after ${mostAttempts} attempts`)
}

/** From the top down. Where the key above is offline nothing happens here; the warnings say so. */
export const replaceWhatIsDue = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  longestLeafMs: number,
): Promise<void> => {
  const nowMs = deps.clock.nowMs()
  const inMemory = deps.options.issuerKey === 'memory'
  const due = { longestLeafMs, why: 'due', by: byItself }
  if (inMemory && state.rootOnline) {
    const { domainCa, root } = state.book
    const longestBelowMs = memoryIssuerLifetimeMs(longestLeafMs)
    const ofUse = domainCa !== null && deps.custody.has({ role: 'domain-ca', id: domainCa.id })
    if (!ofUse || isReplacementDue(domainCa, root, longestBelowMs, nowMs)) {
      await replaceIssuer(deps, state, { ...due, role: 'domain-ca' })
    }
  }
  const above = inMemory ? state.book.domainCa : state.rootOnline ? state.book.root : null
  if (above === null) return
  if (state.signer === null || isReplacementDue(state.signer.record, above, longestLeafMs, nowMs)) {
    await replaceIssuer(deps, state, { ...due, role: 'issuing' })
  }
}
