// The programs root of a domain, an issuing CA below it, and what they sign for programs: as a plane makes them.

import { issuingSpec, rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, type CertificateSpec } from '#pki/certificate.ts'
import { buildCrl } from '#pki/crl.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { toPem } from '#pki/pem.ts'

export type ProgramLeafOf = {
  /** The only URI, or all of them. */
  readonly uris: readonly string[]
  readonly notAfterMs?: number
  readonly ca?: boolean
}

export type ProgramAuthority = {
  readonly rootPem: string
  leaf(of: ProgramLeafOf): { readonly key: string; readonly chain: string }
  /** Of the issuing CA and of the root, with that number. */
  lists(number: number, baseNumber?: number): [issuing: string, root: string]
}

const day = 86_400_000

export const programAuthority = (nowMs: number, domain = 'example.test'): ProgramAuthority => {
  const request = (key: PrivateKey) => ({
    domain,
    spki: key.spki,
    serial: crypto.getRandomValues(new Uint8Array(16)),
    nowMs,
    lifetimeMs: 3650 * day,
  })
  const rootKey = generateKey('p256')
  const root = signed(rootSpec({ ...request(rootKey), pathLen: 1 }), rootKey)
  const issuingKey = generateKey('p256')
  const issuing = signed(issuingSpec(request(issuingKey), root), rootKey)
  const listOf = (authority: ParsedCertificate, key: PrivateKey, number: number, baseNumber: number | null): string =>
    toPem(
      'X509 CRL',
      buildCrl(
        {
          issuer: authority.subjectName,
          authorityKeyId: authority.subjectKeyId ?? '',
          number,
          baseNumber,
          thisUpdateMs: nowMs,
          nextUpdateMs: nowMs + day,
          entries: [{ serial: '2a', atMs: nowMs, reason: 'superseded' }],
          freshestUrl: null,
        },
        key,
      ),
    )
  return {
    rootPem: toPem('CERTIFICATE', root.der),
    leaf: ({ uris, notAfterMs = nowMs + day, ca = false }) => {
      const key = generateKey('p256')
      const leaf = signed(
        {
          serial: crypto.getRandomValues(new Uint8Array(16)),
          subject: { cn: 'program', o: domain, ou: null },
          issuer: issuing.subjectName,
          notBeforeMs: Math.min(nowMs, notAfterMs) - 60_000,
          notAfterMs,
          spki: key.spki,
          extensions: {
            ca: ca ? { pathLen: null } : null,
            keyUsage: ['digitalSignature'],
            extendedKeyUsage: ['clientAuth', 'serverAuth'],
            uris,
            dnsNames: [],
            ips: [],
            authorityKeyId: issuing.subjectKeyId ?? '',
            aiaUrl: null,
            cdpUrl: null,
          },
        },
        issuingKey,
      )
      return { key: key.pkcs8Pem(), chain: [leaf, issuing].map(({ der }) => toPem('CERTIFICATE', der)).join('') }
    },
    lists: (number, baseNumber) => [
      listOf(issuing, issuingKey, number, baseNumber ?? null),
      listOf(root, rootKey, number, null),
    ],
  }
}

const signed = (spec: CertificateSpec, signer: PrivateKey): ParsedCertificate => {
  const certificate = parseCertificate(buildCertificate(spec, signer))
  if (certificate.kind === 'malformed') throw new Error(certificate.why)
  return certificate
}
