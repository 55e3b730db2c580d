// Whether a certificate that came back from the root is the CA that was asked for.

import { isSignedBy, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { isoTime } from '#platform/clock.ts'
import { sameBytes } from '#platform/bytes.ts'
import { pathLenOf, type RequestedRole } from './intermediate-request.ts'

export type ImportFacts = {
  readonly certificate: ParsedCertificate
  readonly role: RequestedRole
  readonly root: ParsedCertificate
  readonly requestedSpki: Uint8Array
  readonly longestLeafMs: number
  readonly nowMs: number
}

/** What is wrong with it, or null. */
export const checkImported = (facts: ImportFacts): string | null => {
  const { certificate, role, root, nowMs } = facts
  if (!sameBytes(certificate.spki, facts.requestedSpki)) return 'its key is not the one this plane asked for'
  if (!sameBytes(certificate.issuerName, root.subjectName) || certificate.authorityKeyId !== root.subjectKeyId) {
    return 'it names another issuer than the root of this domain'
  }
  if (!isSignedBy(certificate, root)) return 'it is not signed by the root of this domain'
  if (!certificate.ca) return 'it is not a CA certificate'
  if (certificate.pathLen !== pathLenOf[role]) {
    return `its path length is ${certificate.pathLen ?? 'absent'} where ${pathLenOf[role]} is needed`
  }
  if (!certificate.keyUsage.includes('keyCertSign')) return 'its key usage does not let it sign certificates'
  if (certificate.extendedKeyUsage.length > 0) return 'its extended key usage limits what it may sign'
  if (certificate.unknownCritical.length > 0) return 'it has critical extensions this plane does not know'
  // 20 bytes are what every tool makes of a key; the issuer is named by them from now on.
  if (certificate.subjectKeyId === null || certificate.subjectKeyId.length !== 40)
    return 'it has no subject key identifier'
  return checkTimes(facts, nowMs)
}

const checkTimes = ({ certificate, root, longestLeafMs }: ImportFacts, nowMs: number): string | null => {
  const { notBeforeMs, notAfterMs } = certificate
  if (notBeforeMs > nowMs) return `it is valid only from ${isoTime(notBeforeMs)} on`
  if (notAfterMs > root.notAfterMs) return 'it outlives the root'
  if (notAfterMs - nowMs < longestLeafMs) {
    return `it ends ${isoTime(notAfterMs)}, before the longest certificate it would have to sign now`
  }
  return null
}
