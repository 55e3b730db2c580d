// Why a call to the plane came to nothing: it refused, it was not there, or it was not the plane.

import { Value } from 'typebox/value'
import { ErrorBody } from '#wire/node-api.ts'
import { isoTime } from '#platform/clock.ts'
import { trouble, type Trouble } from './trouble.ts'

export type PlaneFailure =
  | {
      readonly kind: 'refused'
      readonly code: string
      readonly trouble: Trouble
      readonly retryAfterMs: number | null
    }
  | { readonly kind: 'unreachable'; readonly trouble: Trouble }
  | { readonly kind: 'untrusted'; readonly trouble: Trouble }
  /** The agent itself is being stopped. */
  | { readonly kind: 'stopped' }

const longestRetryAfterMs = 3_600_000

export const refusalFrom = (status: number, retryAfter: string | null, body: string): PlaneFailure => {
  const said = parsed(body)
  if (!Value.Check(ErrorBody, said)) {
    const what = trouble(
      `HTTP_${status}`,
      `The plane answered ${status} without saying why.`,
      'Look at the log of the plane',
    )
    return { kind: 'refused', code: what.code, trouble: what, retryAfterMs: seconds(retryAfter) }
  }
  const text = said.detail === null ? said.message : `${said.message} (${said.detail})`
  const afterMs = said.retry_after_ms ?? seconds(retryAfter)
  return {
    kind: 'refused',
    code: said.code,
    trouble: trouble(said.code, text, said.next),
    retryAfterMs: afterMs === null ? null : Math.min(Math.max(0, afterMs), longestRetryAfterMs),
  }
}

/** A plane that answers, but not what was asked: a newer or a broken one. */
export const unusableAnswer = (why: string): PlaneFailure => ({
  kind: 'refused',
  code: 'ANSWER_UNUSABLE',
  trouble: trouble(
    'ANSWER_UNUSABLE',
    `The plane's answer cannot be used: ${why}.`,
    'Compare the versions of plane and agent',
  ),
  retryAfterMs: null,
})

/** Turns an error of Node's into what it means here; the only place that reads its codes. */
export const failureFrom = (error: unknown, url: string, nowMs: number): PlaneFailure => {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
  const words = error instanceof Error ? error.message : String(error)
  if (code === 'ABORT_ERR') return { kind: 'stopped' }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const text = `The certificate of ${url} is not valid at ${isoTime(nowMs)}, which is what this machine's clock says.`
    return {
      kind: 'untrusted',
      trouble: trouble('clock_skew', text, 'Compare the clocks of this machine and of the plane'),
    }
  }
  if (/ALERT_CERTIFICATE_EXPIRED/.test(code)) {
    const what = trouble(
      'CLIENT_CERT_EXPIRED',
      'The plane says that our certificate has expired.',
      'Enrol again: muster token create --node ID',
    )
    return { kind: 'refused', code: what.code, trouble: what, retryAfterMs: null }
  }
  if (untrustedCodes.has(code)) {
    const next = 'Check where the address leads; if the plane has a new root, enrol again with a new join string'
    return {
      kind: 'untrusted',
      trouble: trouble('server_tls_untrusted', `${url} is not our plane: ${words} (${code}).`, next),
    }
  }
  const next = 'Check the address, the network and whether the plane runs; the agent goes on trying'
  return {
    kind: 'unreachable',
    trouble: trouble('endpoint_unreachable', `${url} does not answer: ${words} (${code}).`, next),
  }
}

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
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

const seconds = (retryAfter: string | null): number | null =>
  retryAfter !== null && /^\d{1,4}$/.test(retryAfter) ? Math.min(Number(retryAfter) * 1000, longestRetryAfterMs) : null
