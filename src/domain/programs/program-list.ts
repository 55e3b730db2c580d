// What is in a revocation list for programs, which number it has and how long it is good for. All of it follows from the time and
// from what has been denied, so that replicas over one store, and a plane that was restarted, make the same lists.
//
// A list is due every half hour; a denial makes a new one at once. It is good for days: a program whose lists have ended refuses
// everybody, and an outage of the plane must not do that.

import type { Denial, DenialReason } from '#domain/core/certificate.ts'

const minute = 60_000
export const programListEveryMs = 30 * minute

/** `untilMs`: when the certificate has ended for every clock. */
export type DeniedLeaf = {
  readonly serial: string
  readonly atMs: number
  readonly untilMs: number
  readonly reason: DenialReason
}

export type ProgramList = {
  readonly number: number
  readonly thisUpdateMs: number
  readonly nextUpdateMs: number
  readonly entries: readonly DeniedLeaf[]
}

/** Numbers between two moments at which a list is due: room for a million entries. A number fits into 53 bits until 2089. */
const perPeriod = 2 ** 32

/** From 1 to 4096, by the last digits of the serial, which are random. */
const addWeight = (sum: number, { serial }: DeniedLeaf): number => sum + 1 + Number.parseInt(serial.slice(-3), 16)

export type ProgramListFacts = {
  readonly denied: readonly DeniedLeaf[]
  readonly nowMs: number
  readonly goodForMs: number
}

/**
 * Between two moments at which a list is due entries are only added, and at such a moment the number grows by more than all of them can
 * add to it: it never goes back, whatever was denied late or by another clock.
 *
 * A replica that has not received every denial yet makes a list with fewer entries. Its number is lower than that of the list with all of
 * them, which replaces it, and by the random serials nearly always another than that of a list which lacks other entries. After a change
 * of a setting two lists with one number may differ in when they end. Neither does harm: agents keep the one they have until there is a
 * higher number, which comes with the missing denial or when the next list is due.
 */
export const programList = ({ denied, nowMs, goodForMs }: ProgramListFacts): ProgramList => {
  const dueMs = programListDueMs(nowMs)
  // An entry stays until it has been on a list that was due after the certificate had expired (RFC 5280, section 3.3).
  const entries = denied.filter((one) => isOnProgramList(one, nowMs))
  const newestMs = entries.reduce((most, { atMs }) => Math.max(most, atMs), dueMs)
  return {
    number: (dueMs / programListEveryMs) * perPeriod + Math.min(entries.reduce(addWeight, 0), perPeriod - 1),
    thisUpdateMs: Math.min(newestMs, nowMs),
    nextUpdateMs: dueMs + programListEveryMs + goodForMs,
    // A verifier must not wait for the moment that a clock which was ahead has put down.
    entries: entries.map((one) => ({ ...one, atMs: Math.min(one.atMs, nowMs) })),
  }
}

/**
 * Not a leaf that had ended for every clock when it was denied: every renewal denies the leaf before the last, and a list that
 * changes with each of them would have every program of the domain read it again. Unless the clock that says so was ahead.
 */
export const isOnProgramList = ({ atMs, untilMs }: Pick<DeniedLeaf, 'atMs' | 'untilMs'>, nowMs: number): boolean => {
  const dueMs = programListDueMs(nowMs)
  const hadEnded = untilMs <= atMs && atMs < dueMs + programListEveryMs
  return untilMs > dueMs - programListEveryMs && !hadEnded
}

export const programListDueMs = (nowMs: number): number => Math.floor(nowMs / programListEveryMs) * programListEveryMs

/** Null: it denies no single certificate. */
export const deniedLeafOf = (denial: Denial): (DeniedLeaf & { readonly issuer: string }) | null => {
  if (denial.kind !== 'certificate') return null
  const { issuer, serial, atMs, untilMs, reason } = denial
  return { issuer, serial, atMs, untilMs, reason }
}
