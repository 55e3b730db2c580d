// A certificate authority that can sign: what is on record of it, and its key.

import type { IssuerRecord } from '#domain/ca/issuer.ts'
import { keyId, loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'

export type CaSigner = {
  readonly record: IssuerRecord
  readonly certificate: ParsedCertificate
  readonly key: PrivateKey
}

export const certificateOf = (record: IssuerRecord): ParsedCertificate => {
  const parsed = parseCertificate(Buffer.from(record.der, 'base64'))
  if (parsed.kind === 'malformed')
    throw new Error(`the certificate of issuer ${record.id} on record is not one: ${parsed.why}`)
  return parsed
}

/** How an issuer is named in every certificate it signs. */
const issuerIdOf = (certificate: ParsedCertificate): string => certificate.subjectKeyId ?? keyId(certificate.spki)

export const recordOf = (
  certificate: ParsedCertificate,
  as: Pick<IssuerRecord, 'role' | 'custody' | 'parent'>,
): IssuerRecord => ({
  id: issuerIdOf(certificate),
  role: as.role,
  der: Buffer.from(certificate.der).toString('base64'),
  parent: as.parent,
  custody: as.custody,
  notBeforeMs: certificate.notBeforeMs,
  notAfterMs: certificate.notAfterMs,
  retiredAtMs: null,
  compromisedAtMs: null,
})

/** Null: its key is not here. */
export const signerFrom = (custody: KeyCustody, record: IssuerRecord): CaSigner | null => {
  const pem = custody.find({ role: record.role, id: record.id })
  return pem === null ? null : signerWith(record, pem)
}

/** Throws where it is another's key. */
export const signerWith = (record: IssuerRecord, pem: string): CaSigner => {
  const certificate = certificateOf(record)
  const key = loadPrivateKey(pem)
  if (!sameBytes(key.spki, certificate.spki)) throw new Error(`the key kept for issuer ${record.id} is not its key`)
  return { record, certificate, key }
}

/** Durable when it resolves; a key in memory custody is never written, and one offline is not ours to keep. */
export const keepKey = async (custody: KeyCustody, { record, key }: CaSigner): Promise<void> => {
  if (record.custody === 'file') await custody.keep({ role: record.role, id: record.id }, key.pkcs8Pem())
}
