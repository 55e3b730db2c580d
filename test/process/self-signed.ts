// A client certificate that nobody has vouched for.

import { buildCertificate } from '#pki/certificate.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { keyId } from '#pki/spki.ts'
import type { Identity } from './node-call.ts'

export const selfSigned = (cn: string): Identity => {
  const key = generateKey('p256')
  const name = { cn, o: null, ou: null }
  const nowMs = Date.now()
  const der = buildCertificate(
    {
      serial: Buffer.from('01', 'hex'),
      subject: name,
      issuer: name,
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3_600_000,
      spki: key.spki,
      extensions: {
        ca: null,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['clientAuth'],
        uris: [],
        dnsNames: [],
        ips: [],
        authorityKeyId: keyId(key.spki),
        aiaUrl: null,
        cdpUrl: null,
      },
    },
    key,
  )
  return { keyPem: key.pkcs8Pem(), chainPem: toPem('CERTIFICATE', der) }
}
