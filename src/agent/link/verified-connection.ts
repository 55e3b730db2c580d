// Connections whose server the agent verifies with its own check (ruling 16): the first one to a plane of which only the root's
// fingerprint is known, and all of them while the clock of the machine is wrong, because Node's check uses that clock. Only
// this file of the agent switches Node's check off, and it replaces it with a stricter one.
//
// A socket is verified in the turn in which the handshake ends, and only a trusted one leaves this file: no byte of a request
// can reach a server that is not the plane. The name of `openUndatedConnection` says the one exception.

import type { Purpose } from '#domain/recovery/failure-class.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem, toPem } from '#pki/pem.ts'
import {
  markProblem,
  verifyServerChain,
  type ChainVerdict,
  type ExpectedMark,
  type ServerChain,
} from '#pki/verify-chain.ts'
import type { Clock } from '#platform/clock.ts'
import { connectTls, presentedChain, targetOf, type TlsSocket } from '#platform/tls-client.ts'
import type { Timers } from '#platform/timers.ts'
import { failureFrom, notThePlane, wrongDates, wrongName, type PlaneFailure } from './plane-failure.ts'

export type ServerTrust =
  /** PEM, one certificate each. */
  | { readonly kind: 'roots'; readonly roots: readonly string[] }
  | { readonly kind: 'fingerprint'; readonly rootFingerprint: string }

export type ClientCertificate = { readonly certPem: string; readonly keyPem: string }

/**
 * What a node shows a plane: its leaf without the chain. A plane looks the leaf up in its store and reads nothing else, but the thread that
 * speaks TLS would parse and verify the rest (docs/decisions/tls/leaf-alone.md).
 */
export const shownToPlane = ({
  chainPem,
  keyPem,
}: {
  readonly chainPem: string
  readonly keyPem: string
}): ClientCertificate => {
  const [leaf] = allFromPem('CERTIFICATE', chainPem) ?? []
  // What cannot be read as a list of certificates is left to TLS to object to.
  return { certPem: leaf === undefined ? chainPem : toPem('CERTIFICATE', leaf), keyPem }
}

export type JudgedTarget = {
  readonly url: URL
  /** Left out: wherever the name leads. */
  readonly address?: string
  readonly trust: ServerTrust
  readonly mark: ExpectedMark
  /** `any`: the mark says that it is the plane, under whatever name. */
  readonly name: 'required' | 'any'
  /** Subject key identifiers of authorities that are not trusted, whichever root is above them. */
  readonly withdrawn: readonly string[]
  readonly purpose: Purpose
  readonly timeoutMs: number
  /** Shown only where a server has been verified a moment ago, without ours. */
  readonly client: ClientCertificate | null
}

/** `root`: what it was recognised by, DER. */
export type VerifiedConnection = { readonly kind: 'verified'; readonly socket: TlsSocket; readonly root: Uint8Array }

/**
 * Every connection is verified in full: behind a load balancer the next one leads to another replica with another
 * certificate.
 */
export const openJudgedConnection = async (
  clock: Clock,
  timers: Timers,
  target: JudgedTarget,
  signal: AbortSignal,
): Promise<VerifiedConnection | PlaneFailure> => {
  let trusted: Extract<ChainVerdict, { kind: 'trusted' }> | null = null
  const opened = await open(clock, timers, target, signal, (verdict, nowMs) => {
    if (verdict.kind === 'untrusted') return distrust(target, verdict, nowMs)
    trusted = verdict
    return null
  })
  if (opened.kind !== 'open') return opened
  return { kind: 'verified', socket: opened.socket, root: rootOf(trusted) }
}

/** `validity`: when all of its certificates are valid at once. */
export type UndatedConnection = {
  readonly kind: 'undated'
  readonly socket: TlsSocket
  readonly validity: Untrusted['validity']
}

/**
 * Verified in everything but the dates, so that the plane can be asked what time it is. Nothing that matters may be sent
 * on it, and nothing unsigned that comes back may be believed. Never with a client certificate.
 */
export const openUndatedConnection = async (
  clock: Clock,
  timers: Timers,
  target: Omit<JudgedTarget, 'client'>,
  signal: AbortSignal,
): Promise<UndatedConnection | PlaneFailure> => {
  let validity: Untrusted['validity'] = null
  const opened = await open(clock, timers, { ...target, client: null }, signal, (verdict, nowMs) => {
    if (verdict.kind === 'trusted') return null
    validity = verdict.validity
    return isDated(verdict) ? null : distrust(target, verdict, nowMs)
  })
  return opened.kind === 'open' ? { kind: 'undated', socket: opened.socket, validity } : opened
}

type Untrusted = Extract<ChainVerdict, { kind: 'untrusted' }>

class NotThePlane extends Error {
  readonly failure: PlaneFailure
  constructor(failure: PlaneFailure) {
    super('not the plane')
    this.failure = failure
  }
}

const open = async (
  clock: Clock,
  timers: Timers,
  target: JudgedTarget,
  signal: AbortSignal,
  object: (verdict: ChainVerdict, nowMs: number) => PlaneFailure | null,
): Promise<{ readonly kind: 'open'; readonly socket: TlsSocket } | PlaneFailure> => {
  const { host, port } = targetOf(target.url)
  const { address, client, timeoutMs, withdrawn, mark } = target
  const anchor = anchorOf(target.trust)
  let isJudged = false
  const vet = (socket: TlsSocket): Error | null => {
    const nowMs = clock.nowMs()
    const objection = object(
      verifyServerChain({
        chain: presentedChain(socket),
        anchor,
        withdrawn,
        mark,
        host: target.name === 'any' ? null : host,
        nowMs,
      }),
      nowMs,
    )
    isJudged = true
    return objection === null ? null : new NotThePlane(objection)
  }
  try {
    const shown = client === null ? {} : { cert: client.certPem, key: client.keyPem }
    const credentials = { ...shown, rejectUnauthorized: false }
    const where = { host, port, ...(address === undefined ? {} : { address }) }
    const socket = await connectTls(timers, { ...where, timeoutMs, credentials, vet }, signal)
    if (!isJudged) throw new Error('a connection was opened without being judged')
    return { kind: 'open', socket }
  } catch (error) {
    const objection = objectionIn(error)
    if (objection !== null) return objection
    const facts = { for: target.purpose, address: address ?? null }
    return failureFrom(error, target.url.origin, clock.nowMs(), facts)
  }
}

/**
 * In addition to Node's own check, which knows neither the mark of the plane nor withdrawn authorities. The caller destroys the
 * socket with a returned error.
 */
export const vetServer =
  (clock: Clock, target: Pick<JudgedTarget, 'url' | 'trust' | 'mark' | 'purpose' | 'withdrawn'>) =>
  (socket: TlsSocket): Error | null => {
    const { url, trust, mark, purpose, withdrawn } = target
    const chain = presentedChain(socket)
    if (withdrawn.length === 0) {
      const why = leafProblem(chain[0], mark)
      return why === null ? null : new NotThePlane(notThePlane(url.origin, why, 'wrong-mark', purpose))
    }
    const { host } = targetOf(url)
    const nowMs = clock.nowMs()
    const verdict = verifyServerChain({ chain, anchor: anchorOf(trust), mark, withdrawn, host, nowMs })
    return verdict.kind === 'trusted' ? null : new NotThePlane(distrust(target, verdict, nowMs))
  }

const leafProblem = (der: Uint8Array | undefined, mark: ExpectedMark): string | null => {
  const leaf = parseCertificate(der ?? new Uint8Array())
  return leaf.kind === 'malformed' ? `its certificate is malformed (${leaf.why})` : markProblem(leaf, mark)
}

/** Null: it is no objection of ours. */
export const objectionIn = (error: unknown): PlaneFailure | null =>
  error instanceof NotThePlane ? error.failure : null

const rootOf = (trusted: Extract<ChainVerdict, { kind: 'trusted' }> | null): Uint8Array => {
  if (trusted === null) throw new Error('a connection was opened without being judged')
  return trusted.root
}

const anchorOf = (trust: ServerTrust): ServerChain['anchor'] => {
  if (trust.kind === 'fingerprint') return { rootFingerprint: trust.rootFingerprint }
  return { roots: trust.roots.map((pem) => fromPem('CERTIFICATE', pem)).filter((der) => der !== null) }
}

const isDated = ({ code }: Untrusted): boolean => code === 'expired' || code === 'not-yet-valid'

const distrust = (target: Pick<JudgedTarget, 'url' | 'purpose'>, verdict: Untrusted, nowMs: number): PlaneFailure => {
  const { url, purpose } = target
  if (verdict.code === 'wrong-name') return wrongName(url, verdict.why, purpose)
  if (!isDated(verdict)) return notThePlane(url.origin, verdict.why, verdict.code, purpose)
  const { validity } = verdict
  return wrongDates({ kind: 'server-dates', url: url.origin, for: purpose, nowMs, validity, stated: false })
}
