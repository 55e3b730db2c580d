// What a service-account token has to say before it makes a worker of its bearer. Its signature is checked before this is asked.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { WorkerIssuer } from './worker-issuer.ts'

/** A token that holds now, of an issuer of ours. */
export type WorkerToken = {
  readonly kind: 'token'
  /** Of the pod, as the issuer says: never as the caller does. */
  readonly instance: string
  /** SHA-256 of what the issuer has signed, hex. */
  readonly hash: string
  readonly expiresAtMs: number
}

type Claims = Readonly<Record<string, unknown>>

const longestLifeMs = 24 * 3_600_000

/** Kubernetes writes UUIDs. The common name of the certificate has room for 44 characters behind its prefix. */
const instanceShape = /^[0-9a-z]([0-9a-z-]{6,42})[0-9a-z]$/

/** Before its signature is checked: whose it says it is. Null: no issuer of ours, and its key is not asked for. */
export const issuerOfClaims = (claims: Claims, issuers: readonly WorkerIssuer[]): WorkerIssuer | null =>
  issuers.find(({ iss, aud, sub }) => claims['iss'] === iss && claims['sub'] === sub && soleAudience(claims) === aud) ??
  null

/** Null: it has none, or several. A token for two services can be used at one by the other. */
const soleAudience = ({ aud }: Claims): unknown => {
  if (!Array.isArray(aud)) return aud
  return aud.length === 1 ? (aud[0] as unknown) : null
}

export const judgeWorkerToken = (
  { claims, hash }: { readonly claims: Claims; readonly hash: string },
  toleranceMs: number,
  nowMs: number,
): WorkerToken | Refusal => {
  const issuedAtMs = timeIn(claims['iat'])
  const expiresAtMs = timeIn(claims['exp'])
  const validFromMs = claims['nbf'] === undefined ? issuedAtMs : timeIn(claims['nbf'])
  if (issuedAtMs === null || expiresAtMs === null || validFromMs === null)
    return refuse('WORKER_TOKEN_INVALID', 'it does not say since when and until when it holds (iat, exp, nbf)')
  if (expiresAtMs - issuedAtMs > longestLifeMs || expiresAtMs <= issuedAtMs)
    return refuse(
      'WORKER_TOKEN_INVALID',
      'it lives longer than 24 h: ask for one with expirationSeconds of 86400 or less',
    )
  if (nowMs >= expiresAtMs) return refuse('WORKER_TOKEN_EXPIRED')
  if (issuedAtMs - nowMs > toleranceMs || validFromMs - nowMs > toleranceMs)
    return refuse('WORKER_TOKEN_INVALID', 'it begins in the future: compare the clocks of both machines')
  const instance = instanceIn(claims)
  if (instance === null)
    return refuse('WORKER_TOKEN_INVALID', 'it names no pod: mount a projected service-account token into the pod')
  return { kind: 'token', instance, hash, expiresAtMs }
}

/** Seconds since 1970 (RFC 7519, 2). */
const timeIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 && value < 1e11 ? Math.floor(value * 1000) : null

const instanceIn = (claims: Claims): string | null => {
  const uid = field(field(claims['kubernetes.io'], 'pod'), 'uid')
  return typeof uid === 'string' && instanceShape.test(uid) ? uid : null
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : null
