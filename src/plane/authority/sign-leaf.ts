// The hot path: one certificate as ordered, signed and looked over.

import type { SigningOrder, IssuedCertificate } from '#domain/core/certificate.ts'
import { leafSpec, type StatusPlaces } from '#pki/authority-certificates.ts'
import { buildCertificate, serialHex, fingerprint } from '#pki/certificate.ts'
import { spkiHash } from '#pki/keys.ts'
import type { Random } from '#platform/random.ts'
import type { CaSigner } from './ca-signer.ts'
import { serialBytes } from './make-issuer.ts'
import type { IssuerRecord } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'

export const signLeaf = (
  signer: CaSigner,
  order: SigningOrder,
  random: Random,
  statusUrl: string | null = null,
): IssuedCertificate => {
  const { certificate: ca } = signer
  if (order.issuedAtMs >= ca.notAfterMs) throw new Error(`issuing CA ${signer.record.id} has expired`)
  // A clock set back by more than that would make certificates from before their own issuer.
  if (order.issuedAtMs < ca.notBeforeMs)
    throw new Error(`the clock is behind the start of issuing CA ${signer.record.id}`)

  const serial = random.bytes(serialBytes)
  const spec = leafSpec(order, ca, serial, statusPlacesOf(statusUrl, signer.record))
  const der = Buffer.from(buildCertificate(spec, signer.key))
  checkAgainstOrder(der, order)
  return {
    issuer: signer.record.id,
    serial: serialHex(serial),
    spki: spkiHash(order.publicKey),
    sha256: fingerprint(der),
    issuedAtMs: order.issuedAtMs,
    notAfterMs: spec.notAfterMs,
    der: der.toString('base64'),
    order: order.id,
  }
}

/** Cheap on purpose: the key and every name have to be in there, byte for byte. */
const checkAgainstOrder = (der: Buffer, order: SigningOrder): void => {
  const { cn, o, ou } = order.subject
  const there =
    der.includes(order.publicKey) &&
    [cn, o, ou, ...order.uriSans, ...order.dnsSans].every((name) => der.includes(name, 0, 'utf8'))
  if (!there) throw new Error(`the certificate for order ${order.id} is not what was ordered`)
}

// Where others ask whether a certificate still holds: the paths of the status listener, under the URL it is found at.

export const ocspPath = '/ocsp'
const fullListPath = (issuer: IssuerId): string => `/crl/${issuer}.crl`
export const deltaListPath = (issuer: IssuerId): string => `/crl/${issuer}-delta.crl`

/** An issuer in memory has no lists: who would sign them when its plane is gone? */
const statusPlacesOf = (url: string | null, { id, custody }: Pick<IssuerRecord, 'id' | 'custody'>): StatusPlaces => ({
  ocspUrl: url === null ? null : `${url}${ocspPath}`,
  crlUrl: url === null || custody !== 'file' ? null : `${url}${fullListPath(id)}`,
})
