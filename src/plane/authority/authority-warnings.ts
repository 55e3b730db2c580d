// What an operator has to know about the authorities: what only a person can do, in time for it to be done.

import type { IssuerRecord } from '#domain/ca/issuer.ts'
import { isoTime } from '#platform/clock.ts'
import type { IssuerBook } from './issuer-book.ts'
import { halfLifeMs } from './issuer-life.ts'

export type WarningFacts = {
  readonly book: IssuerBook
  /** Newest first. */
  readonly recoveryRoots: readonly IssuerRecord[]
  readonly rootOnline: boolean
  readonly issuerKey: 'file' | 'memory'
  /** Whether anything signs leaves now. */
  readonly signs: boolean
  readonly intermediateLifetimeMs: number
  readonly longestLeafMs: number
  readonly nowMs: number
}

/** The authority it is about, and a sentence. */
export type AgingWarning = { readonly issuer: string; readonly text: string }

const theWayOut = 'muster ca request, then muster ca sign where the root is, then muster ca import'

/** Told from half life on, where only the offline root could help (ruling 1). */
export const agingWarnings = (facts: WarningFacts): readonly AgingWarning[] => {
  const { book, rootOnline, nowMs } = facts
  const below = facts.issuerKey === 'memory' ? book.domainCa : book.issuing
  return [
    ...(rootOnline ? [] : offlineWarnings(facts, below)),
    ...signingWarnings(facts),
    ...rootWarnings(facts, nowMs),
    ...recoveryWarnings(facts),
  ]
}

const offlineWarnings = ({ book, longestLeafMs, nowMs }: WarningFacts, below: IssuerRecord | null): AgingWarning[] => {
  if (below === null) return [{ issuer: book.root.id, text: `There is no CA below the offline root: ${theWayOut}` }]
  const { id, role, notAfterMs } = below
  const ends = isoTime(notAfterMs)
  const say = (text: string): AgingWarning[] => [{ issuer: id, text: `The ${role} CA ${id} ${text}: ${theWayOut}` }]
  if (notAfterMs <= nowMs) return say(`ended ${ends}, and the root is offline`)
  if (notAfterMs - nowMs < longestLeafMs)
    return say(`ends ${ends} and already cuts certificates short; the root is offline`)
  return nowMs >= halfLifeMs(below) ? say(`ends ${ends} and is past half its life; the root is offline`) : []
}

const signingWarnings = ({ book, signs }: WarningFacts): AgingWarning[] =>
  signs ? [] : [{ issuer: book.root.id, text: 'No issuing CA can sign now: nothing can be enrolled or renewed' }]

const rootWarnings = ({ book, intermediateLifetimeMs }: WarningFacts, nowMs: number): AgingWarning[] => {
  const { id, notBeforeMs, notAfterMs } = book.root
  if (nowMs < notBeforeMs)
    return [{ issuer: id, text: `The clock is behind the start of the root, ${isoTime(notBeforeMs)}` }]
  if (notAfterMs - nowMs >= intermediateLifetimeMs) return []
  return [
    { issuer: id, text: `The root ends ${isoTime(notAfterMs)}: every CA made below it from now on ends then too` },
  ]
}

/** The successor of a recovery root is made by itself; machines that were off ever since do not know it. */
const recoveryWarnings = ({ recoveryRoots, nowMs }: WarningFacts): AgingWarning[] =>
  recoveryRoots
    .filter(({ notAfterMs }) => notAfterMs - nowMs < year)
    .map(({ id, notAfterMs }) => ({
      issuer: id,
      text: `The recovery root ${id} ends ${isoTime(notAfterMs)}: a machine that knows no newer one then needs muster node repair-bundle`,
    }))

const year = 365 * 24 * 3600 * 1000
