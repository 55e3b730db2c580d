// Answers an OCSP request of any caller, signed by the responder of the issuer.

import type { Write } from '#domain/core/change.ts'
import { buildOcspResponse, ocspError, type OcspError, type SingleAnswer } from '#pki/ocsp-response.ts'
import { parseOcspRequest, type CertId, type OcspRequest } from '#pki/ocsp-request.ts'
import { wholeSecondMs } from '#pki/der-time.ts'
import type { Responder, Responders } from './responders.ts'
import { certificateStatusOf } from './certificate-status-of.ts'
import { goodForMs, openKeptAnswers, stateOf, type KeptAnswer, type KeptAnswers } from './kept-answers.ts'
import type { Core } from '#plane/core/core.ts'

export type OcspOutcome = SingleAnswer['status']['kind'] | OcspError

export type OcspReply = {
  readonly der: Uint8Array
  /** Of every certificate asked for, or why none is answered. */
  readonly outcomes: readonly OcspOutcome[]
  /** Null: for this request only. */
  readonly goodFrom: { readonly thisUpdateMs: number; readonly nextUpdateMs: number } | null
}

export type AnswerOcsp = (question: Uint8Array) => Promise<OcspReply>

type OcspCore = Pick<Core, 'store' | 'feed' | 'clock'>

/** How long the same question is answered with the same signature, unless something is denied meanwhile. */
const repeatedForMs = 5000
const mostRepeated = 1024

type Repeated = { readonly reply: OcspReply; readonly untilMs: number }

export const openOcsp = (core: OcspCore, responders: Responders): AnswerOcsp => {
  const isServing = (): boolean => core.store.replicas.standing().kind === 'serving'
  const repeated = new Map<string, Repeated>()
  const keptAnswers = openKeptAnswers(core.clock)
  let denials = 0
  core.feed.subscribe('OCSP answers', ({ writes }) => {
    if (!writes.some(mayRevoke)) return
    denials++
    repeated.clear()
  })

  return async (question) => {
    // A replica that may not know of a revocation must not call a certificate good.
    if (!isServing()) return failed('tryLater')
    const request = parseOcspRequest(question)
    if (request.kind === 'malformed') return failed('malformedRequest')
    const key = Buffer.from(question).toString('latin1')
    const before = repeated.get(key)
    if (before !== undefined && before.untilMs > core.clock.monotonicMs()) return before.reply

    const denialsBefore = denials
    const reply = await answer(core, responders, keptAnswers, request)
    if (!isServing()) return failed('tryLater')
    if (reply.goodFrom !== null && denials === denialsBefore) {
      if (repeated.size >= mostRepeated) repeated.clear()
      repeated.set(key, { reply, untilMs: core.clock.monotonicMs() + repeatedForMs })
    }
    return reply
  }
}

/** Renewals and first uses write nodes all the time, and revoke nothing. */
const mayRevoke = (write: Write): boolean => {
  if (write.put === 'node') return ['revoked', 'quarantined'].includes(write.value.membership.kind)
  return write.put === 'denial' || write.put === 'issuer' || write.put === 'key-ban'
}

const answer = async (
  core: OcspCore,
  responders: Responders,
  keptAnswers: KeptAnswers,
  { asked, nonce }: OcspRequest,
): Promise<OcspReply> => {
  const responder = await onlyResponder(responders, asked)
  // A responder signs only for its own issuer, and one answer has one signature.
  if (responder === null || responder.notAfterMs <= core.clock.nowMs()) return failed('unauthorized')
  if (responder.identity.keyIs === 'elsewhere') return answerKept(core, responder, keptAnswers, asked)
  const answers = await Promise.all(
    asked.map(async ({ der, serial }): Promise<SingleAnswer> => {
      const { status } = await certificateStatusOf(core, responder.issuer, serial)
      return { certId: der, status }
    }),
  )
  const thisUpdateMs = wholeSecondMs(core.clock.nowMs())
  const times = { thisUpdateMs, nextUpdateMs: Math.min(thisUpdateMs + goodForMs, responder.notAfterMs) }
  return {
    der: await buildOcspResponse({ answers, producedAtMs: thisUpdateMs, ...times, nonce }, responder.identity),
    outcomes: answers.map(({ status }) => status.kind),
    goodFrom: nonce === null ? times : null,
  }
}

/**
 * With a key that is elsewhere: about one certificate, which is on record, and without the nonce. Callers can think of any number of questions
 * beyond that, and each would take a signature.
 */
const answerKept = async (
  core: OcspCore,
  responder: Responder,
  keptAnswers: KeptAnswers,
  [asked, ...more]: OcspRequest['asked'],
): Promise<OcspReply> => {
  const { row, status } = await certificateStatusOf(core, responder.issuer, asked.serial)
  if (row === null || more.length > 0) return failed('unauthorized')
  const found = keptAnswers.answer(responder, asked, status)
  if ('now' in found) return keptReply(found.now, status)
  const made = await found.later
  if (made === null) return failed('tryLater')
  // It may have been revoked while the signature was waited for.
  const since = await certificateStatusOf(core, responder.issuer, asked.serial)
  return stateOf(since.status) === stateOf(status) ? keptReply(made, status) : failed('tryLater')
}

const keptReply = ({ der, thisUpdateMs, nextUpdateMs }: KeptAnswer, { kind }: SingleAnswer['status']): OcspReply => ({
  der,
  outcomes: [kind],
  goodFrom: { thisUpdateMs, nextUpdateMs },
})

const onlyResponder = async (
  responders: Responders,
  [first, ...more]: readonly [CertId, ...CertId[]],
): Promise<Responder | null> => {
  const found = await responders(first)
  for (const other of more) if ((await responders(other))?.issuer !== found?.issuer) return null
  return found
}

export const failed = (error: OcspError): OcspReply => ({ der: ocspError(error), outcomes: [error], goodFrom: null })
