// Builds and signs answers about the status of certificates (RFC 6960, 4.2): basic ones, by a responder that is named by
// its key and brings its certificate along.

import { contextOf, context, tags } from './der.ts'
import { generalizedTime } from './der-time.ts'
import { bits, constructed, type Der, encode, enumerated, octets, oid, primitive, raw, sequence } from './der-writer.ts'
import { reasonCodes, type RevocationReason } from './crl.ts'
import { extension } from './extensions.ts'
import { keyHash } from './keys.ts'
import { oids } from './oids.ts'
import { algorithmIdentifier, algorithmOf } from './signature.ts'
import { type MadeWith, type Signer, signedWith } from './signer.ts'

export type AnsweredStatus =
  | { readonly kind: 'good' | 'unknown' }
  | { readonly kind: 'revoked'; readonly atMs: number; readonly reason: RevocationReason }

export type SingleAnswer = {
  /** The CertID of the question, DER. */
  readonly certId: Uint8Array
  readonly status: AnsweredStatus
}

export type OcspAnswer = {
  readonly answers: readonly SingleAnswer[]
  readonly producedAtMs: number
  readonly thisUpdateMs: number
  readonly nextUpdateMs: number
  /** That of the question; null: it had none. */
  readonly nonce: Uint8Array | null
}

export type ResponderIdentity<S extends Signer = Signer> = { readonly key: S; readonly certificate: Uint8Array }

const basic = oid(oids.basicOcspResponse)
const nonceId = oid(oids.ocspNonce)

/** DER. */
export const buildOcspResponse = <S extends Signer>(
  answer: OcspAnswer,
  { key, certificate }: ResponderIdentity<S>,
): MadeWith<S, Uint8Array> => {
  const algorithm = raw(algorithmIdentifier[algorithmOf[key.type]])
  const { nonce } = answer
  const data = encode(
    sequence(
      constructed(contextOf(2), [octets(Buffer.from(keyHash(key.spki, 'sha1'), 'hex'))]),
      generalizedTime(answer.producedAtMs),
      sequence(...answer.answers.map((one) => single(one, answer))),
      ...(nonce === null ? [] : [constructed(contextOf(1), [sequence(extension(nonceId, false, octets(nonce)))])]),
    ),
  )
  const certificates = constructed(contextOf(0), [sequence(raw(certificate))])
  return signedWith(key, data, (signature) => {
    const response = sequence(raw(data), algorithm, bits(signature), certificates)
    const typed = sequence(basic, constructed(tags.octetString, [response]))
    return encode(sequence(enumerated(0), constructed(contextOf(0), [typed])))
  })
}

const single = ({ certId, status }: SingleAnswer, { thisUpdateMs, nextUpdateMs }: OcspAnswer): Der =>
  sequence(
    raw(certId),
    statusOf(status),
    generalizedTime(thisUpdateMs),
    constructed(contextOf(0), [generalizedTime(nextUpdateMs)]),
  )

const nothing = new Uint8Array(0)

const statusOf = (status: AnsweredStatus): Der => {
  switch (status.kind) {
    case 'good':
      return primitive(context(0), nothing)
    case 'revoked': {
      const code = reasonCodes[status.reason]
      const reason = code === 0 ? [] : [constructed(contextOf(0), [enumerated(code)])]
      return constructed(contextOf(1), [generalizedTime(status.atMs), ...reason])
    }
    case 'unknown':
      return primitive(context(2), nothing)
  }
}

const errors = { malformedRequest: 1, internalError: 2, tryLater: 3, unauthorized: 6 } as const

export type OcspError = keyof typeof errors

/** Unsigned, as the standard has it. DER. */
export const ocspError = (error: OcspError): Uint8Array => encode(sequence(enumerated(errors[error])))
