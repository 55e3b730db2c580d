// OCSP answers by a key that is elsewhere, which takes its time and serves others, too. Questions are anonymous: one about the same certificate in the same
// state is answered with one signature for a while, few signatures are made at once, and few wait.

import type { IssuerId } from '#domain/core/node.ts'
import { wholeSecondMs } from '#pki/der-time.ts'
import type { CertId } from '#pki/ocsp-request.ts'
import { buildOcspResponse, type SingleAnswer } from '#pki/ocsp-response.ts'
import type { Clock } from '#platform/clock.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { openSigningSlots } from '#plane/keys/signing-slots.ts'
import type { Responder } from './responders.ts'

export type KeptAnswer = { readonly der: Uint8Array; readonly thisUpdateMs: number; readonly nextUpdateMs: number }

export type KeptAnswers = {
  /** `now`: it was signed before, so the status that was given is the one that is answered. Null: it cannot be signed now. */
  answer(
    responder: Responder,
    asked: CertId,
    status: SingleAnswer['status'],
  ): { readonly now: KeptAnswer } | { readonly later: Promise<KeptAnswer | null> }
}

/** How long others may rely on an answer. */
export const goodForMs = 5 * 60_000
/** How long it is repeated. */
const freshForMs = 2 * 60_000
/** Where no new one can be signed, one that is this much longer good is repeated all the same. */
const leastLeftMs = 60_000
const mostKept = 4096
/** A token signs one after the other: this is what an enrollment waits behind. */
const mostSigning = 4
/** Fewer than there may be connections. */
const mostWaiting = 60

export const openKeptAnswers = (clock: Pick<Clock, 'nowMs'>): KeptAnswers => {
  const kept = new Map<string, KeptAnswer>()
  const underWay = new Map<string, Promise<KeptAnswer | null>>()
  const slots = openSigningSlots({ most: mostSigning, mostWaiting })

  const sign = async ({ identity, notAfterMs }: Responder, answered: SingleAnswer): Promise<KeptAnswer> => {
    const thisUpdateMs = wholeSecondMs(clock.nowMs())
    const times = { thisUpdateMs, nextUpdateMs: Math.min(thisUpdateMs + goodForMs, notAfterMs) }
    const answer = { answers: [answered], producedAtMs: thisUpdateMs, ...times, nonce: null }
    return { der: await buildOcspResponse(answer, identity), ...times }
  }
  const signOnce = async (name: string, responder: Responder, answered: SingleAnswer): Promise<KeptAnswer | null> => {
    try {
      const made = await slots.run(() => sign(responder, answered))
      if (made === null) return null
      // The oldest goes first.
      kept.delete(name)
      kept.set(name, made)
      for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
      return made
    } catch (error) {
      // There is an alert for it; a line for each question would be for callers to write.
      if (isKeyUnavailable(error)) return null
      throw error
    } finally {
      underWay.delete(name)
    }
  }

  return {
    answer(responder, asked, status) {
      const name = nameOf(responder.issuer, asked, status)
      const before = kept.get(name)
      const ageMs = before === undefined ? Infinity : clock.nowMs() - before.thisUpdateMs
      if (before !== undefined && ageMs >= 0 && ageMs < freshForMs) return { now: before }
      const signing = underWay.get(name) ?? signOnce(name, responder, { certId: asked.der, status })
      underWay.set(name, signing)
      const isGood = before !== undefined && ageMs >= 0 && before.nextUpdateMs - clock.nowMs() >= leastLeftMs
      return { later: signing.then((made) => made ?? (isGood ? before : null)) }
    },
  }
}

const nameOf = (issuer: IssuerId, { der }: CertId, status: SingleAnswer['status']): string =>
  [issuer, Buffer.from(der).toString('latin1'), stateOf(status)].join('\0')

/** Two of the same text are answered alike. */
export const stateOf = (status: SingleAnswer['status']): string =>
  status.kind === 'revoked' ? `${status.kind} ${status.atMs} ${status.reason}` : status.kind
