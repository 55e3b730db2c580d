// A certificate as it travels: the leaf, then its issuers, without the root; PEM.

import { toPem } from '#pki/pem.ts'
import type { Issuer } from '#plane/core/issuer.ts'

export const pemChain = (
  issuer: Pick<Issuer, 'chainOf'>,
  certificate: { readonly issuer: string; readonly der: string },
): string =>
  [Buffer.from(certificate.der, 'base64'), ...issuer.chainOf(certificate.issuer)]
    .map((der) => toPem('CERTIFICATE', der))
    .join('')
