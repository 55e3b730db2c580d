// Certificates that must not parse, each saying what is wrong with it. All are correctly signed: it is their form that
// is wrong.

import { contextOf, tags } from '#pki/der.ts'
import {
  bits,
  bool,
  constructed,
  type Der,
  encode,
  namedBits,
  octets,
  oid,
  primitive,
  raw,
  sequence,
  smallNumber,
  text,
} from '#pki/der-writer.ts'
import { generateKey } from '#pki/keys.ts'
import { oids } from '#pki/oids.ts'
import { hierarchy, leaf, nowMs, serverOrder } from './pki-hierarchy.ts'
import { extension, field, rewritten, withExtensions, withField, without } from './pki-rewrite-certificate.ts'

export type HostileCertificate = { readonly wrong: string; readonly der: Uint8Array; readonly why: RegExp }

const bytes = (hex: string): Der => raw(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const utc = (digits: string): Der => text(tags.utcTime, digits)
const long = (digits: string): Der => text(tags.generalizedTime, digits)

export const hostileCertificates = (): HostileCertificate[] => {
  const { issuing } = hierarchy('p256', nowMs)
  const key = generateKey('p256')
  const good = leaf(key, serverOrder(key, {}), issuing).certificate.der
  const by = issuing.key
  const set = (wrong: string, why: RegExp, place: number, value: Der): HostileCertificate => ({
    wrong,
    why,
    der: withField(good, by, place, value),
  })
  const ext = (wrong: string, why: RegExp, id: string, value: Der): HostileCertificate => ({
    wrong,
    why,
    der: withExtensions(good, by, (all) => [...without(id, all), extension(id, false, value)]),
  })
  const validity = (wrong: string, why: RegExp, from: Der): HostileCertificate =>
    set(wrong, why, field.validity, sequence(from, utc('300101000000Z')))
  return [
    set('the version is 1', /version 3/, field.version, constructed(contextOf(0), [smallNumber(0)])),
    { wrong: 'the version is left out', why: /version 3/, der: rewritten(good, by, (fields) => fields.slice(1)) },
    set('the serial is negative', /negative/, field.serial, bytes('0201 80')),
    set('the serial is zero', /zero/, field.serial, smallNumber(0)),
    set('the serial has 21 bytes', /too long/, field.serial, primitive(tags.integer, new Uint8Array(21).fill(1))),
    set('the serial is not in its shortest form', /shortest form/, field.serial, bytes('0202 0001')),
    set('the two signature algorithms differ', /two different/, field.algorithm, sequence(oid(oids.ecdsaWithSha384))),
    set('the issuer has an empty part', /empty part/, field.issuer, sequence(constructed(tags.set, []))),
    validity('a time has no seconds', /form allowed/, utc('2601010000Z')),
    validity('a time has an offset', /form allowed/, utc('260101000000+0100')),
    validity('a time has a fraction', /form allowed/, long('20600101000000.5Z')),
    validity('a time is on February 30', /does not exist/, utc('260230000000Z')),
    validity('a time is at 24 hours', /does not exist/, utc('260101240000Z')),
    validity('a time is in second 60', /does not exist/, utc('260101000060Z')),
    validity('a time before 2050 is written the long way', /long way/, long('20260101000000Z')),
    set(
      'there is a third time',
      /left over/,
      field.validity,
      sequence(utc('260101000000Z'), utc('270101000000Z'), utc('280101000000Z')),
    ),
    set(
      'the key is off its curve',
      /not a valid p256/,
      field.spki,
      sequence(sequence(oid(oids.ecPublicKey), oid(oids.p256)), bits(new Uint8Array(65).fill(4))),
    ),
    set('the list of extensions is empty', /empty list/, field.extensions, constructed(contextOf(3), [sequence()])),
    {
      wrong: 'there are no extensions',
      why: /expected \[3\]|cut short/,
      der: rewritten(good, by, (fields) => fields.slice(0, 7)),
    },
    {
      wrong: 'there is something after the extensions',
      why: /left over/,
      der: rewritten(good, by, (fields) => [...fields, smallNumber(0)]),
    },
    {
      wrong: 'it has a unique identifier of its issuer',
      why: /expected \[3\]/,
      der: rewritten(good, by, (fields) => fields.toSpliced(7, 0, bytes('8102 0001'))),
    },
    {
      wrong: 'an extension comes twice',
      why: /twice/,
      der: withExtensions(good, by, (all) => [...all, ...all.slice(0, 1)]),
    },
    {
      wrong: 'there are 40 extensions',
      why: /too many/,
      der: withExtensions(good, by, (all) => [
        ...all,
        ...Array.from({ length: 40 }, (_, i) => extension(`1.2.3.${i}`, false, smallNumber(1))),
      ]),
    },
    {
      wrong: 'an extension says that it is not critical',
      why: /default value/,
      der: withExtensions(good, by, (all) => [
        ...all,
        sequence(oid('1.2.3.4'), bool(false), octets(Uint8Array.of(5, 0))),
      ]),
    },
    {
      wrong: 'an extension is critical by 01',
      why: /boolean/,
      der: withExtensions(good, by, (all) => [
        ...all,
        sequence(oid('1.2.3.4'), bytes('010101'), octets(Uint8Array.of(5, 0))),
      ]),
    },
    ext('basic constraints say false in so many words', /default value/, oids.basicConstraints, sequence(bool(false))),
    ext('a path length stands on what is no CA', /not a CA/, oids.basicConstraints, sequence(smallNumber(0))),
    ext('the path length is negative', /out of range/, oids.basicConstraints, sequence(bool(true), bytes('0201ff'))),
    ext(
      'there is something after the basic constraints',
      /left over/,
      oids.basicConstraints,
      raw(Buffer.from('30000500', 'hex')),
    ),
    ext('the key usage allows nothing', /allows nothing/, oids.keyUsage, namedBits([])),
    ext('the key usage has trailing zeros', /trailing zeros/, oids.keyUsage, bytes('0302 00 80')),
    ext('the key usage has a bit nobody knows', /unknown key usage/, oids.keyUsage, namedBits([0, 9])),
    ext('the extended key usage is empty', /allows nothing/, oids.extendedKeyUsage, sequence()),
    ext('the alternative names are empty', /empty list/, oids.subjectAltName, sequence()),
    ext(
      'a DNS name has a null byte in it',
      /no place/,
      oids.subjectAltName,
      sequence(text(0x82, 'plane.example.test\0.evil.test')),
    ),
    ext('a DNS name has a line break in it', /no place/, oids.subjectAltName, sequence(text(0x82, 'a\nb'))),
    ext('an IP address has five bytes', /strange length/, oids.subjectAltName, sequence(bytes('8705 0102030405'))),
    ext('a key identifier is empty', /strange length/, oids.subjectKeyId, octets(Uint8Array.of())),
    ext('a key identifier has 100 bytes', /strange length/, oids.subjectKeyId, octets(new Uint8Array(100))),
    { wrong: 'a byte follows', why: /left over/, der: Buffer.concat([good, Uint8Array.of(0)]) },
    { wrong: 'the last byte is missing', why: /beyond the end/, der: good.subarray(0, -1) },
    { wrong: 'it is larger than any certificate', why: /more than/, der: new Uint8Array(20_000) },
    { wrong: 'it is empty', why: /cut short/, der: new Uint8Array(0) },
    {
      wrong: 'the signature algorithm has NULL parameters',
      why: /with parameters/,
      der: encode(sequence(sequence(), sequence(oid(oids.ecdsaWithSha256), bytes('0500')), bits(Uint8Array.of(1)))),
    },
  ]
}
