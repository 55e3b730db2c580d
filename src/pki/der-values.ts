// The simple values of DER, each in its only valid form.

import { type DerReader, malformed, tags } from './der.ts'

/** For a field that defaults to false: false is then said by leaving it out, so only true may be read. */
export const readTrueIfPresent = (reader: DerReader): boolean => {
  if (reader.next !== tags.boolean) return false
  if (!booleanOf(reader.content(tags.boolean))) malformed('a default value written out')
  return true
}

const booleanOf = (content: Uint8Array): boolean => {
  if (content.length !== 1 || (content[0] !== 0x00 && content[0] !== 0xff))
    malformed('a boolean that is neither 00 nor ff')
  return content[0] === 0xff
}

/** The bytes of an integer, big-endian two's complement, as short as they can be. */
export const readInteger = (reader: DerReader): Uint8Array => minimal(reader.content(tags.integer))

const minimal = (content: Uint8Array): Uint8Array => {
  const [first, second] = content
  if (first === undefined) return malformed('an empty integer')
  if (second !== undefined && ((first === 0x00 && second < 0x80) || (first === 0xff && second >= 0x80))) {
    malformed('an integer not in its shortest form')
  }
  return content
}

/** A small number that is not negative. */
export const readSmallNumber = (reader: DerReader): number => {
  const bytes = readInteger(reader)
  if (bytes.length > 4 || (bytes[0] ?? 0) >= 0x80) malformed('a number out of range')
  return bytes.reduce((number, byte) => number * 256 + byte, 0)
}

export const readOid = (reader: DerReader): string => oidOf(reader.content(tags.oid))

const oidOf = (content: Uint8Array): string => {
  const last = content.at(-1)
  if (last === undefined || last >= 0x80) malformed('an object identifier cut short')
  if (content.length > 64) malformed('an object identifier too long')
  let text = ''
  let arc = 0
  let fresh = true
  for (const byte of content) {
    if (fresh && byte === 0x80) malformed('an object identifier not in its shortest form')
    arc = arc * 128 + (byte & 0x7f)
    if (arc > Number.MAX_SAFE_INTEGER) malformed('an object identifier with a giant part')
    fresh = byte < 0x80
    if (!fresh) continue
    const top = Math.min(2, Math.floor(arc / 40))
    text += text === '' ? `${top}.${arc - top * 40}` : `.${arc}`
    arc = 0
  }
  return text
}

/** The bytes of a bit string that has a whole number of them. */
export const readWholeBits = (reader: DerReader): Uint8Array => {
  const content = reader.content(tags.bitString)
  if (content[0] !== 0) malformed('a bit string that is not whole bytes')
  return content.subarray(1)
}

/** The numbers of the bits set in a list of named bits, where DER forbids trailing zeros. */
export const readNamedBits = (reader: DerReader): number[] => {
  const content = reader.content(tags.bitString)
  const unused = unusedBits(content)
  const bits: number[] = []
  for (let bit = 0; bit < (content.length - 1) * 8 - unused; bit++) {
    if (((content[1 + (bit >> 3)] ?? 0) & (0x80 >> (bit & 7))) !== 0) bits.push(bit)
  }
  if (content.length > 1 && bits.at(-1) !== (content.length - 1) * 8 - unused - 1)
    malformed('named bits with trailing zeros')
  return bits
}

const unusedBits = (content: Uint8Array): number => {
  const [unused] = content
  if (unused === undefined || unused > 7 || (content.length === 1 && unused !== 0))
    return malformed('a bit string with a bad header')
  if (((content.at(-1) ?? 0) & ((1 << unused) - 1)) !== 0 && content.length > 1)
    malformed('a bit string with unused bits set')
  return unused
}

/** ASCII without control characters, from a string of this tag. */
export const readAscii = (reader: DerReader, tag: number): string => {
  const content = reader.content(tag)
  for (const byte of content) if (byte < 0x20 || byte > 0x7e) malformed('a character that has no place in a name')
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('latin1')
}

const constructed = 0x20

/** Walks through one element of any kind: for the parts of a request that are not used, and still have to be DER. */
export const readAny = (reader: DerReader): void => {
  const tag = reader.next
  if (tag === tags.set) {
    for (const member of reader.setOf(tag)) readAny(reader.over(member))
    return
  }
  if ((tag & constructed) === 0) return readPrimitive(tag, reader)
  if (tag < 0x40 && tag !== tags.sequence) malformed('a constructed encoding of a simple value')
  const inside = reader.inside(tag)
  while (!inside.atEnd) readAny(inside)
}

const readPrimitive = (tag: number, reader: DerReader): void => {
  const content = reader.content(tag)
  if (tag === tags.boolean) booleanOf(content)
  else if (tag === tags.integer) minimal(content)
  else if (tag === tags.oid) oidOf(content)
  else if (tag === tags.bitString) unusedBits(content)
  else if (tag === tags.null && content.length !== 0) malformed('a null with content')
  else if (tag === 0x00 || tag === 0x10 || tag === 0x11) malformed('a primitive encoding of a list')
}
