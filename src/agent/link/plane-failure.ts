// What a call to the plane came to: an answer, parsed once, or why there is none (it refused, it was not there, or it was not
// the plane). Every failure has its class, so that nothing is tried again before it is known what is wrong.

import type { TSchema } from 'typebox'
import { refusals, type RetryClass } from '#domain/core/refusal-table.ts'
import { classify, type Observed, type Purpose } from '#domain/recovery/failure-class.ts'
import { isoTime } from '#platform/clock.ts'
import type { ExchangeAnswer } from '#platform/http-exchange.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { PlaneClosing } from '#wire/channel/channel.ts'
import { ErrorBody } from '#wire/core/error-body.ts'
import { retryClassOf } from '#wire/core/newer-codes.ts'
import { classified, observedTrouble, trouble, type Trouble } from '#agent/core/trouble.ts'
import type { AnswerOf, Endpoint } from '#wire/core/endpoint.ts'

export type PlaneFailure =
  | {
      readonly kind: 'refused'
      /** As it was sent; `retry` is what follows from it. */
      readonly code: string
      readonly retry: RetryClass
      /** The field of the request that the plane does not know; null: another reason, or a plane before 0.3.0. */
      readonly unknownField: string | null
      /** Where the key of the request is of another type: those that the profile allows. Empty: another reason. */
      readonly keyTypes: readonly string[]
      readonly trouble: Trouble
      readonly retryAfterMs: number | null
    }
  | { readonly kind: 'unreachable'; readonly trouble: Trouble }
  | { readonly kind: 'untrusted'; readonly trouble: Trouble }
  /** The agent itself is being stopped. */
  | { readonly kind: 'stopped' }

export type Refused = Extract<PlaneFailure, { kind: 'refused' }>

/** What a call was, for classifying how it failed. */
export type CallFacts = {
  readonly at: Purpose
  /** The certificate that was shown, at the time the agent believes. */
  readonly certificate: { readonly notAfterMs: number; readonly nowMs: number } | null
}

const bareRuntimeCall: CallFacts = { at: 'runtime', certificate: null }
const longestRetryAfterMs = 3_600_000
const mostKeyTypes = 8

export const refusalFrom = (
  status: number,
  retryAfter: string | null,
  body: string,
  facts: CallFacts = bareRuntimeCall,
): PlaneFailure => {
  const said = parsed(body)
  if (!matchesSchema(ErrorBody, said)) {
    const text = `The plane answered ${status} without saying why.`
    const code = `HTTP_${status}`
    return refusedWith({ code, retry: retryClassOf(null, status), text }, seconds(retryAfter), facts)
  }
  const text = said.detail === null ? said.message : `${said.message} (${said.detail})`
  const afterMs = said.retry_after_ms ?? seconds(retryAfter)
  const boundedMs = afterMs === null ? null : Math.min(Math.max(0, afterMs), longestRetryAfterMs)
  const { code, next } = said
  const unknownField = said.field_unknown === true ? (said.field ?? null) : null
  const keyTypes = (said.key_types ?? []).slice(0, mostKeyTypes)
  const refused = refusedWith({ code, retry: retryClassOf(code, status), text, next }, boundedMs, facts)
  return { ...refused, unknownField, keyTypes }
}

/** The plane has ended a channel for a reason it would also refuse the next one for. */
export const refusalOfClosing = ({ code, detail, retry_after_ms: afterMs }: PlaneClosing): Refused => {
  const text = `The plane has ended the channel: ${detail ?? code}.`
  const said = { code, retry: retryClassOf(code, null), text, next: 'The agent retries automatically' }
  return refusedWith(said, afterMs ?? null, bareRuntimeCall)
}

/** `next`: what the plane says to do next, which knows more than the agent does. */
type Said = { readonly code: string; readonly retry: RetryClass; readonly text: string; readonly next?: string }

const refusedWith = ({ code, retry, text, next }: Said, retryAfterMs: number | null, facts: CallFacts): Refused => {
  const verdict = classify({ kind: 'refused', code, retry, ...facts })
  const what = classified(trouble(code, text, next ?? verdict.next), verdict.class, verdict.evidence)
  return { kind: 'refused', code: what.code, retry, unknownField: null, keyTypes: [], trouble: what, retryAfterMs }
}

/** A plane that answers, but not what was asked: a newer or a broken one. */
export const unusableAnswer = (why: string, facts: CallFacts = bareRuntimeCall): PlaneFailure => {
  const text = `The plane's answer cannot be used: ${why}.`
  const next = 'Compare the versions of plane and agent: muster version'
  return refusedWith({ code: 'ANSWER_UNUSABLE', retry: 'wrong-request', text, next }, null, facts)
}

/** What a connection was, for classifying how it failed. */
export type ConnectionFacts = {
  readonly for: Purpose
  readonly address: string | null
}

const bareConnection: ConnectionFacts = { for: 'runtime', address: null }

/** Turns an error of Node's into what it means here; the only place that reads its codes. */
export const failureFrom = (
  error: unknown,
  url: string,
  nowMs: number,
  facts: ConnectionFacts = bareConnection,
): PlaneFailure => {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
  // Node adds what a programmer could do; here that would be to trust whom we must not.
  const words = (error instanceof Error ? error.message : String(error)).replace(/; if the root CA is .*$/, '')
  if (code === 'ABORT_ERR') return { kind: 'stopped' }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return wrongDates({ kind: 'server-dates', url, for: facts.for, nowMs, validity: null, stated: false })
  }
  if (/ALERT_CERTIFICATE_EXPIRED/.test(code)) {
    const text = 'The plane says that our certificate has expired.'
    const { retry } = refusals.CLIENT_CERT_EXPIRED
    return refusedWith({ code: 'CLIENT_CERT_EXPIRED', retry, text }, null, { at: facts.for, certificate: null })
  }
  // Node looks at the names last: the chain leads to a root of ours.
  if (wrongNameCodes.has(code)) return wrongName(new URL(url), `${words} (${code})`, facts.for)
  if (untrustedCodes.has(code)) return notThePlane(url, `${words} (${code})`, code, facts.for)
  return noAnswer(url, `${words} (${code})`, {
    kind: 'no-answer',
    code,
    url,
    address: facts.address,
    lastGoodTried: 0,
  })
}

export const notThePlane = (url: string, why: string, code: string, purpose: Purpose): PlaneFailure => ({
  kind: 'untrusted',
  trouble: observedTrouble('server_tls_untrusted', `${url} is not our plane: ${why}.`, {
    kind: 'server-untrusted',
    code,
    url,
    for: purpose,
  }),
})

/** The server has the plane's root above it, and is not called what we call it: the plane was renamed, or the name leads elsewhere. */
export const wrongName = (url: URL, why: string, purpose: Purpose): PlaneFailure => ({
  kind: 'untrusted',
  trouble: observedTrouble(
    wrongNameCode,
    `The plane at ${url.origin} is not called ${url.hostname} in its certificate: ${why}.`,
    { kind: 'wrong-name', name: url.hostname, url: url.origin, for: purpose },
  ),
})

const wrongNameCode = 'server_name_wrong'

export const isAboutName = (outcome: { readonly kind: string; readonly trouble?: Trouble }): boolean =>
  outcome.kind === 'untrusted' && outcome.trouble?.code === wrongNameCode

export const noAnswer = (
  url: string,
  why: string,
  seen: Extract<Observed, { kind: 'no-answer' }>,
): Extract<PlaneFailure, { kind: 'unreachable' }> => ({
  kind: 'unreachable',
  trouble: observedTrouble('endpoint_unreachable', `${url} does not answer: ${why}.`, seen),
})

/** `clock_skew` while it is open whose fault it is; once the plane has stated the time, it is the certificate's. */
export const wrongDates = (
  seen: Extract<Observed, { kind: 'server-dates' }>,
): Extract<PlaneFailure, { kind: 'untrusted' }> => {
  const { url, nowMs, validity, stated } = seen
  const window =
    validity === null
      ? 'not valid now'
      : `valid from ${isoTime(validity.notBeforeMs)} to ${isoTime(validity.notAfterMs)}`
  const clock = stated ? 'and the plane itself says that it is' : "and this machine's clock says"
  const text = `The certificates of ${url} are ${window}, ${clock} ${isoTime(nowMs)}.`
  return { kind: 'untrusted', trouble: observedTrouble(stated ? 'server_tls_untrusted' : 'clock_skew', text, seen) }
}

/** The clock may be all that is wrong: a statement of time decides. */
export const isAboutDates = (outcome: { readonly kind: string; readonly trouble?: Trouble }): boolean =>
  outcome.kind === 'untrusted' && outcome.trouble?.code === 'clock_skew'

const untrustedCodes: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
])

const wrongNameCodes: ReadonlySet<string> = new Set(['HOSTNAME_MISMATCH', 'ERR_TLS_CERT_ALTNAME_INVALID'])

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

const seconds = (retryAfter: string | null): number | null =>
  retryAfter !== null && /^\d{1,4}$/.test(retryAfter) ? Math.min(Number(retryAfter) * 1000, longestRetryAfterMs) : null

export const longestAnswer = 256 * 1024

export type Answered<T> = { readonly kind: 'answer'; readonly value: T }

/** A call that an agent makes. */
export type AgentEndpoint = Endpoint & { readonly method: 'GET' | 'POST'; readonly answer: TSchema }

/** Fields that this agent does not know are let through: a newer plane may say more. */
export const parseAnswer = <E extends AgentEndpoint>(
  endpoint: E,
  answer: ExchangeAnswer,
  facts?: CallFacts,
): Answered<AnswerOf<E>> | PlaneFailure => {
  const { status, retryAfter, body } = answer
  if (status < 200 || status > 299) return refusalFrom(status, retryAfter, body, facts)
  try {
    const value: unknown = JSON.parse(body)
    if (matchesSchema(endpoint.answer, value)) return { kind: 'answer', value: value as AnswerOf<E> }
  } catch {
    // Not JSON: said below, like any other answer that is not one.
  }
  return unusableAnswer('it does not fit the schema', facts)
}
