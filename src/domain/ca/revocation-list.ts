// What is in a revocation list, which number it has and how long it is good for. All of it follows from the time and from
// what has been denied, so that replicas over one store make the same lists without asking each other.
//
// A full list is due every half hour and good for an hour; what is denied in between makes a new one. Its number is the
// moment it was due or that of the newest denial in it, in milliseconds. A delta adds to the full list that was due last
// but one: whichever full list is still good can be combined with it.

import type { DenialReason } from '#domain/core/certificate.ts'

export type ListedCertificate = {
  readonly serial: string
  readonly atMs: number
  readonly reason: DenialReason
  readonly notAfterMs: number
}

export type RevocationList = {
  readonly number: number
  /** Null: a full one. */
  readonly baseNumber: number | null
  readonly thisUpdateMs: number
  readonly nextUpdateMs: number
  readonly entries: readonly ListedCertificate[]
}

const minute = 60_000
export const fullEveryMs = 30 * minute
const fullGoodForMs = 2 * fullEveryMs
const deltaEveryMs = 5 * minute
const deltaGoodForMs = 2 * deltaEveryMs
/** A denial may be committed some time after the moment it bears, and by a replica whose clock is behind. */
const lateByMs = 5 * minute

export type ListFacts = {
  /** Every certificate of the issuer that has been denied and has not been forgotten since. */
  readonly denied: readonly ListedCertificate[]
  readonly nowMs: number
  /** No list may have a lower number: one of that number has been given out. */
  readonly leastNumber: number
}

export const fullList = ({ denied, nowMs, leastNumber }: ListFacts): RevocationList => {
  const dueMs = lastDue(nowMs, fullEveryMs)
  const entries = denied.filter((one) => isListed(one, dueMs))
  const number = entries.reduce((most, { atMs }) => Math.max(most, atMs), Math.max(dueMs, leastNumber))
  return {
    number,
    baseNumber: null,
    // A denial by a replica whose clock is ahead must not make a list that is not good yet.
    thisUpdateMs: Math.min(number, nowMs),
    nextUpdateMs: dueMs + fullGoodForMs,
    // Nor must a verifier wait for the moment that a clock which was ahead has put down.
    entries: entries.map((one) => ({ ...one, atMs: Math.min(one.atMs, nowMs) })),
  }
}

export const deltaList = (facts: ListFacts): RevocationList => {
  const { nowMs } = facts
  const full = fullList(facts)
  const baseNumber = lastDue(nowMs, fullEveryMs) - fullEveryMs
  const dueMs = lastDue(nowMs, deltaEveryMs)
  const number = Math.max(full.number, dueMs)
  return {
    number,
    baseNumber,
    thisUpdateMs: Math.min(number, nowMs),
    nextUpdateMs: dueMs + deltaGoodForMs,
    entries: full.entries.filter(({ atMs }) => atMs >= baseNumber - lateByMs),
  }
}

/** An entry stays until it has been on a list that was due after the certificate had expired (RFC 5280, section 3.3). */
export const isListed = ({ notAfterMs }: Pick<ListedCertificate, 'notAfterMs'>, dueMs: number): boolean =>
  notAfterMs > dueMs - fullEveryMs

const lastDue = (nowMs: number, everyMs: number): number => Math.floor(nowMs / everyMs) * everyMs
