// Takes a certificate apart, changes it, and signs it again: for certificates our own builder would refuse to make.

import { contextOf, DerReader, tags } from '#pki/der.ts'
import { bits, constructed, type Der, encode, octets, oid, raw, sequence, bool } from '#pki/der-writer.ts'
import type { PrivateKey } from '#pki/keys.ts'
import { algorithmIdentifier, algorithmOf } from '#pki/signature.ts'

/** The fields of the part that is signed, in their order. */
export const field = { version: 0, serial: 1, algorithm: 2, issuer: 3, validity: 4, subject: 5, spki: 6, extensions: 7 }

export const rewritten = (der: Uint8Array, signer: PrivateKey, edit: (fields: Der[]) => Der[]): Uint8Array => {
  const tbs = encode(sequence(...edit(elements(inside(inside(der, tags.sequence), tags.sequence)))))
  return encode(sequence(raw(tbs), raw(algorithmIdentifier[algorithmOf[signer.type]]), bits(signer.sign(tbs))))
}

export const withField = (der: Uint8Array, signer: PrivateKey, place: number, value: Der): Uint8Array =>
  rewritten(der, signer, (fields) => fields.with(place, value))

export const withExtensions = (der: Uint8Array, signer: PrivateKey, edit: (all: Der[]) => Der[]): Uint8Array =>
  rewritten(der, signer, (fields) => {
    const old = encode(fields[field.extensions] ?? sequence())
    const list = inside(inside(old, contextOf(3)), tags.sequence)
    return fields.with(field.extensions, constructed(contextOf(3), [sequence(...edit(elements(list)))]))
  })

export const extension = (id: string, critical: boolean, value: Der): Der =>
  sequence(oid(id), ...(critical ? [bool(true)] : []), octets(encode(value)))

/** The same list without the extension of this kind. */
export const without = (id: string, all: readonly Der[]): Der[] => {
  const type = encode(oid(id))
  return all.filter((one) => Buffer.compare(encode(one).subarray(2, 2 + type.length), type) !== 0)
}

const inside = (der: Uint8Array, tag: number): Uint8Array => new DerReader(der, 0, der.length, 0).content(tag)

const elements = (content: Uint8Array): Der[] => {
  const reader = new DerReader(content, 0, content.length, 0)
  const all: Der[] = []
  while (!reader.atEnd) all.push(raw(reader.whole(reader.next)))
  return all
}
