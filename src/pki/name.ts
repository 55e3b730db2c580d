// Distinguished names: written from three fields, read with any attributes.

import { isUtf8 } from 'node:buffer'
import { type DerReader, malformed, tags } from './der.ts'
import { readOid } from './der-values.ts'
import { constructed, type Der, encode, oid, sequence, text } from './der-writer.ts'
import { oids } from './oids.ts'

export type Name = { readonly cn: string | null; readonly o: string | null; readonly ou: string | null }

/** Characters, not bytes (RFC 5280, appendix A.1: ub-common-name and its siblings). */
export const longestNamePart = 64

const parts = [
  ['cn', oid(oids.commonName)],
  ['o', oid(oids.organization)],
  ['ou', oid(oids.organizationalUnit)],
] as const

/** What keeps this from being the name in a certificate, or null when nothing does. */
export const nameProblem = (name: Name): string | null => {
  for (const [part] of parts) {
    const value = name[part]
    if (value === null) continue
    const length = [...value].length
    if (length === 0) return `${part} is empty`
    if (length > longestNamePart) return `${part} has ${length} characters, more than ${longestNamePart}`
    if (!value.isWellFormed() || /\p{Cc}/u.test(value)) return `${part} has characters that do not belong in a name`
  }
  return null
}

/** Throws where `nameProblem` would object: names are checked where they are chosen. */
export const encodeName = (name: Name): Uint8Array => {
  const problem = nameProblem(name)
  if (problem !== null) throw new Error(`not a name for a certificate: ${problem}`)
  const rdns: Der[] = []
  for (const [part, type] of parts) {
    const value = name[part]
    if (value !== null) rdns.push(constructed(tags.set, [sequence(type, text(tags.utf8String, value))]))
  }
  return encode(sequence(...rdns))
}

/** Reads the next element as a name and returns it for people: `CN=node-gpu-001, O=example, OU=nodes`. */
export const readName = (reader: DerReader): string => {
  const name = reader.inside(tags.sequence)
  const texts: string[] = []
  while (!name.atEnd) {
    const members = name.setOf(tags.set)
    if (members.length === 0) malformed('a name with an empty part')
    texts.push(members.map((member) => readAttribute(name.over(member))).join(' + '))
    if (texts.length > 32) malformed('a name with too many parts')
  }
  return texts.join(', ')
}

/**
 * Whether a name, as `readName` has shown it, has these parts and no other. Other CAs write them in another order and as other types of string;
 * every reader of the name finds the same in it.
 */
export const isNamed = (shown: string, { cn, o, ou }: Name): boolean => {
  const wanted = [...part('CN', cn), ...part('O', o), ...part('OU', ou)]
  return partsIn(shown).join('\n') === wanted.toSorted().join('\n')
}

const part = (label: string, value: string | null): string[] => (value === null ? [] : [`${label}=${safe(value)}`])

/** Commas within a value are written otherwise, and a part with several values is none of these. */
const partsIn = (shown: string): string[] => (shown === '' ? [] : shown.split(', ').toSorted())

const labels: Readonly<Record<string, string>> = {
  [oids.commonName]: 'CN',
  [oids.organization]: 'O',
  [oids.organizationalUnit]: 'OU',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.5': 'serialNumber',
  '0.9.2342.19200300.100.1.25': 'DC',
}

const readAttribute = (member: DerReader): string => {
  const attribute = member.inside(tags.sequence)
  const type = readOid(attribute)
  const value = readValue(attribute)
  attribute.finish()
  return `${labels[type] ?? type}=${value}`
}

const textTags: readonly number[] = [tags.utf8String, tags.printableString, tags.ia5String]

/** The older string types that a name may have, and the bytes of one character in each. OpenSSL refuses any other tag. */
const olderStrings: Readonly<Record<number, number>> = {
  [tags.numericString]: 1,
  [tags.t61String]: 1,
  [tags.universalString]: 4,
  [tags.bmpString]: 2,
}

const readValue = (attribute: DerReader): string => {
  if (!textTags.includes(attribute.next)) {
    const characterBytes = olderStrings[attribute.next]
    if (characterBytes === undefined) return malformed('a name whose value is not a string')
    if (attribute.content(attribute.next).length % characterBytes !== 0)
      malformed('a name that is cut within a character')
    return '(not shown)'
  }
  const content = attribute.content(attribute.next)
  if (!isUtf8(content)) malformed('a name that is not UTF-8')
  return safe(Buffer.from(content).toString('utf8'))
}

// Control characters would let a name forge lines; the separators would let it forge parts.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\,+=]/gu
const safe = (value: string): string => value.replaceAll(unsafe, escaped)
const escaped = (character: string): string => Buffer.from(character).reduce((all, byte) => all + '\\' + hex(byte), '')
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
