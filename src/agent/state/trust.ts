// What this machine knows the plane by, and what its own certificate hangs under. They are kept apart: the root of an
// issuer that is not the plane's own is never trusted for a server.

import { fingerprint } from '#pki/certificate.ts'
import { isSignedBy, parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import type { Identity } from './credentials.ts'

/** SHA-256 of root certificates, hex. */
export type Trust = {
  /** For the plane's server certificate. */
  readonly plane: readonly string[]
  /** For that of its recovery listener. */
  readonly recovery: readonly string[]
  /** The root above this node's own certificate; null: not known. */
  readonly certificate: string | null
}

export const trustOf = ({ roots, recovery, current }: Pick<Identity, 'roots' | 'recovery' | 'current'>): Trust => ({
  plane: roots.flatMap(fingerprintOf),
  recovery: (recovery?.trust.roots ?? []).flatMap(fingerprintOf),
  certificate: current.rootPem === null ? null : (fingerprintOf(current.rootPem)[0] ?? null),
})

const fingerprintOf = (pem: string): string[] => {
  const der = fromPem('CERTIFICATE', pem)
  return der === null ? [] : [fingerprint(der)]
}

/** Which of these roots has signed the last certificate of a chain; null: none. */
export const rootOfChain = (chainPem: string, roots: readonly string[]): string | null => {
  const last = certificateIn(allFromPem('CERTIFICATE', chainPem)?.at(-1))
  if (last === null) return null
  const isAbove = (pem: string): boolean => {
    const root = certificateIn(fromPem('CERTIFICATE', pem))
    return root !== null && Buffer.compare(last.issuerName, root.subjectName) === 0 && isSignedBy(last, root)
  }
  return roots.find(isAbove) ?? null
}

const certificateIn = (der: Uint8Array | null | undefined): ParsedCertificate | null => {
  if (der === null || der === undefined) return null
  const parsed = parseCertificate(der)
  return parsed.kind === 'certificate' ? parsed : null
}
