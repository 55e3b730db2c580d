// The first connection to a plane (ruling 16). No root is trusted yet, only its fingerprint is known, so Node's own check
// is replaced by a stricter one. This is the only file of the agent in which Node's check is switched off.
//
// The socket is judged in the very turn in which the handshake ends, and only a trusted one leaves this file: no byte of
// a request can reach a server that is not the plane.

import type { Clock } from '#platform/clock.ts'
import { isoTime } from '#platform/clock.ts'
import { connectTls, presentedChain, targetOf, type TlsSocket } from '#platform/tls-client.ts'
import type { Timers } from '#platform/timers.ts'
import { verifyServerChain, type Untrusted } from '#pki/verify-chain.ts'
import { failureFrom, type PlaneFailure } from '../plane-failure.ts'
import { trouble, type Trouble } from '../trouble.ts'

export type VerifiedTarget = { readonly url: URL; readonly rootFingerprint: string }

/** `root`: the root certificate the server was recognised by, DER. */
export type VerifiedConnection = { readonly kind: 'verified'; readonly socket: TlsSocket; readonly root: Uint8Array }

class NotThePlane extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super(trouble.text)
    this.trouble = trouble
  }
}

const handshakeTimeoutMs = 10_000

export const openVerifiedConnection = async (
  deps: { readonly clock: Clock; readonly timers: Timers },
  target: VerifiedTarget,
  signal: AbortSignal,
): Promise<VerifiedConnection | PlaneFailure> => {
  const { host, port } = targetOf(target.url)
  let root: Uint8Array | null = null
  const vet = (socket: TlsSocket): Error | null => {
    const nowMs = deps.clock.nowMs()
    const chain = presentedChain(socket)
    const verdict = verifyServerChain({ chain, anchor: { rootFingerprint: target.rootFingerprint }, host, nowMs })
    if (verdict.kind === 'untrusted') return new NotThePlane(distrust(target.url, verdict, nowMs))
    root = verdict.root
    return null
  }
  try {
    const credentials = { rejectUnauthorized: false }
    const socket = await connectTls(
      deps.timers,
      { host, port, timeoutMs: handshakeTimeoutMs, credentials, vet },
      signal,
    )
    if (root === null) throw new Error('a connection was opened without being judged')
    return { kind: 'verified', socket, root }
  } catch (error) {
    if (error instanceof NotThePlane) return { kind: 'untrusted', trouble: error.trouble }
    return failureFrom(error, target.url.origin, deps.clock.nowMs())
  }
}

const distrust = (url: URL, verdict: Untrusted, nowMs: number): Trouble => {
  if (verdict.code !== 'expired' && verdict.code !== 'not-yet-valid') {
    const next =
      'Check where the address leads, and compare the root fingerprint: muster ca show; then make a new join string'
    return trouble('server_tls_untrusted', `${url.origin} is not the plane of the join string: ${verdict.why}.`, next)
  }
  const { validity } = verdict
  const window =
    validity === null ? 'never at one time' : `from ${isoTime(validity.notBeforeMs)} to ${isoTime(validity.notAfterMs)}`
  return trouble(
    'clock_skew',
    `The certificates of ${url.origin} are valid ${window}, and this machine's clock says ${isoTime(nowMs)}.`,
    'Set the clock of this machine (timedatectl set-ntp true); if it is right, the certificate of the plane has expired',
  )
}
