// Writes DER in one pass: a value is described as a tree that knows its length, then written into one buffer.

import { tags } from './der.ts'

export type Der = {
  /** Null for an element that is already encoded. */
  readonly tag: number | null
  readonly content: Uint8Array | readonly Der[]
  readonly length: number
  /** The length with the header. */
  readonly size: number
}

export const primitive = (tag: number, content: Uint8Array): Der => element(tag, content, content.length)

export const constructed = (tag: number, members: readonly Der[]): Der => {
  let length = 0
  for (const member of members) length += member.size
  return element(tag, members, length)
}

const element = (tag: number, content: Der['content'], length: number): Der => ({
  tag,
  content,
  length,
  size: 1 + lengthSize(length) + length,
})

const lengthSize = (length: number): number => {
  if (length < 0x80) return 1
  if (length < 0x100) return 2
  return length < 0x10000 ? 3 : 4
}

/** An element encoded before. */
export const raw = (der: Uint8Array): Der => ({ tag: null, content: der, length: der.length, size: der.length })

export const encode = (der: Der): Uint8Array => {
  const out = new Uint8Array(der.size)
  write(der, out, 0)
  return out
}

const write = (der: Der, out: Uint8Array, from: number): number => {
  let at = der.tag === null ? from : writeHeader(der.tag, der.length, out, from)
  if (der.content instanceof Uint8Array) {
    out.set(der.content, at)
    return at + der.length
  }
  for (const member of der.content) at = write(member, out, at)
  return at
}

const writeHeader = (tag: number, length: number, out: Uint8Array, from: number): number => {
  out[from] = tag
  const more = lengthSize(length) - 1
  if (more === 0) out[from + 1] = length
  else {
    if (length > 0xffffff) throw new Error('a value too large for this writer')
    out[from + 1] = 0x80 | more
    for (let i = 0; i < more; i++) out[from + 2 + i] = (length >>> (8 * (more - 1 - i))) & 0xff
  }
  return from + 2 + more
}

export const sequence = (...members: readonly Der[]): Der => constructed(tags.sequence, members)

export const bool = (value: boolean): Der => primitive(tags.boolean, Uint8Array.of(value ? 0xff : 0x00))

/** An integer that is not negative, from its big-endian bytes. */
export const unsigned = (bytes: Uint8Array): Der => {
  const start = bytes.findIndex((byte) => byte !== 0)
  if (start === -1) return primitive(tags.integer, Uint8Array.of(0))
  const significant = bytes.subarray(start)
  if ((significant[0] ?? 0) < 0x80) return primitive(tags.integer, significant)
  const signed = new Uint8Array(significant.length + 1)
  signed.set(significant, 1)
  return primitive(tags.integer, signed)
}

export const smallNumber = (value: number): Der =>
  unsigned(Uint8Array.of(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff))

/** An integer beyond 32 bits that is not negative. */
export const largeNumber = (value: number): Der => {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('not a number this writer knows')
  return unsigned(Buffer.from(value.toString(16).padStart(16, '0'), 'hex'))
}

export const enumerated = (value: number): Der => primitive(tags.enumerated, Uint8Array.of(value))

/** Does some work: those used for every certificate are made once. */
export const oid = (dotted: string): Der => {
  const [top, second, ...rest] = dotted.split('.').map(Number)
  if (top === undefined || second === undefined) throw new Error(`not an object identifier: ${dotted}`)
  return primitive(tags.oid, Uint8Array.from([top * 40 + second, ...rest].flatMap(base128)))
}

const base128 = (arc: number): number[] => {
  const bytes = [arc % 128]
  for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) bytes.unshift(0x80 | (left % 128))
  return bytes
}

export const octets = (content: Uint8Array): Der => primitive(tags.octetString, content)

/** A bit string of whole bytes. */
export const bits = (content: Uint8Array): Der => {
  const padded = new Uint8Array(content.length + 1)
  padded.set(content, 1)
  return primitive(tags.bitString, padded)
}

/** Named bits, by their numbers, without trailing zeros. */
export const namedBits = (numbers: readonly number[]): Der => {
  if (numbers.length === 0) return primitive(tags.bitString, Uint8Array.of(0))
  const last = Math.max(...numbers)
  const content = new Uint8Array(2 + (last >> 3))
  content[0] = 7 - (last & 7)
  for (const bit of numbers) content[1 + (bit >> 3)] = (content[1 + (bit >> 3)] ?? 0) | (0x80 >> (bit & 7))
  return primitive(tags.bitString, content)
}

export const text = (tag: number, value: string): Der => primitive(tag, Buffer.from(value, 'utf8'))
