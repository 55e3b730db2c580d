// Builds and signs certificate revocation lists (RFC 5280, section 5): version 2, for everything one issuer has signed, so
// that no issuing distribution point is needed. What goes into one is decided elsewhere.

import { context, contextOf } from './der.ts'
import { time } from './der-time.ts'
import {
  bits,
  constructed,
  type Der,
  encode,
  enumerated,
  largeNumber,
  oid,
  primitive,
  raw,
  sequence,
  smallNumber,
  unsigned,
} from './der-writer.ts'
import { crlAt, extension } from './extensions.ts'
import { oids } from './oids.ts'
import { algorithmIdentifier, algorithmOf } from './signature.ts'
import { type MadeWith, type Signer, signedWith } from './signer.ts'

/** The numbers of RFC 5280, 5.3.1. `unspecified` is said by saying nothing. */
export const reasonCodes = {
  unspecified: 0,
  'key-compromise': 1,
  'ca-compromise': 2,
  superseded: 4,
  'cessation-of-operation': 5,
} as const

export type RevocationReason = keyof typeof reasonCodes

export type RevokedEntry = {
  /** Hex, no leading zeros. */
  readonly serial: string
  readonly atMs: number
  readonly reason: RevocationReason
}

export type CrlSpec = {
  /** The subject of the issuer, DER. */
  readonly issuer: Uint8Array
  /** Hex. */
  readonly authorityKeyId: string
  readonly number: number
  /** The number of the full list this one adds to; null: this is a full one. */
  readonly baseNumber: number | null
  readonly thisUpdateMs: number
  readonly nextUpdateMs: number
  readonly entries: readonly RevokedEntry[]
  /** Where the newest delta is, in a full one; null: not said. */
  readonly freshestUrl: string | null
}

const id = {
  authorityKeyId: oid(oids.authorityKeyId),
  crlNumber: oid(oids.crlNumber),
  deltaCrlIndicator: oid(oids.deltaCrlIndicator),
  freshestCrl: oid(oids.freshestCrl),
  reasonCode: oid(oids.reasonCode),
}

const version2 = smallNumber(1)

const coded = (code: number): readonly Der[] => [
  raw(encode(sequence(extension(id.reasonCode, false, enumerated(code))))),
]

// There are few: each is encoded once.
const withReason: Readonly<Record<RevocationReason, readonly Der[]>> = {
  unspecified: [],
  'key-compromise': coded(reasonCodes['key-compromise']),
  'ca-compromise': coded(reasonCodes['ca-compromise']),
  superseded: coded(reasonCodes.superseded),
  'cessation-of-operation': coded(reasonCodes['cessation-of-operation']),
}

/** DER. */
export const buildCrl = <S extends Signer>(spec: CrlSpec, signer: S): MadeWith<S, Uint8Array> => {
  if (spec.nextUpdateMs <= spec.thisUpdateMs) throw new Error('a revocation list that ends before it begins')
  if (spec.baseNumber !== null && spec.baseNumber > spec.number) throw new Error('a delta older than its base')
  const algorithm = raw(algorithmIdentifier[algorithmOf[signer.type]])
  const entries = [...spec.entries].sort(bySerial).map(revoked)
  const tbs = encode(
    sequence(
      version2,
      algorithm,
      raw(spec.issuer),
      time(spec.thisUpdateMs),
      time(spec.nextUpdateMs),
      // An empty list is said by leaving it out.
      ...(entries.length === 0 ? [] : [sequence(...entries)]),
      constructed(contextOf(0), [sequence(...extensionsOf(spec))]),
    ),
  )
  return signedWith(signer, tbs, (signature) => encode(sequence(raw(tbs), algorithm, bits(signature))))
}

/** As numbers: no serial has leading zeros. */
const bySerial = (a: RevokedEntry, b: RevokedEntry): number =>
  a.serial.length - b.serial.length || (a.serial < b.serial ? -1 : a.serial > b.serial ? 1 : 0)

const revoked = ({ serial, atMs, reason }: RevokedEntry): Der =>
  sequence(
    unsigned(Buffer.from(serial.length % 2 === 0 ? serial : `0${serial}`, 'hex')),
    time(atMs),
    ...withReason[reason],
  )

const extensionsOf = ({ authorityKeyId, number, baseNumber, freshestUrl }: CrlSpec): Der[] => [
  extension(id.authorityKeyId, false, sequence(primitive(context(0), Buffer.from(authorityKeyId, 'hex')))),
  extension(id.crlNumber, false, largeNumber(number)),
  // Critical: read as a full list it would let everything pass that was revoked before its base.
  ...(baseNumber === null ? [] : [extension(id.deltaCrlIndicator, true, largeNumber(baseNumber))]),
  ...(baseNumber !== null || freshestUrl === null ? [] : [extension(id.freshestCrl, false, crlAt(freshestUrl))]),
]
