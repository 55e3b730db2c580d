// A strict DER reader: one encoding for one value, or it is malformed. Input that two parsers could read differently is refused,
// so that what was checked here is what OpenSSL on the other side sees.

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  t61String: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** Context-specific tags: `context(0)` holds a value, `contextOf(0)` holds elements. */
export const context = (number: number): number => 0x80 | number
export const contextOf = (number: number): number => 0xa0 | number

const deepest = 16

export type Malformed = { readonly kind: 'malformed'; readonly why: string }

/** Thrown and caught within src/pki: outside, malformed input is a value. */
class MalformedDer extends Error {}

export const malformed = (why: string): never => {
  throw new MalformedDer(why)
}

/** Reads one element and nothing after it. */
export const readDer = <T>(der: Uint8Array, read: (top: DerReader) => T): T => {
  const top = new DerReader(der, 0, der.length, 0)
  const value = read(top)
  top.finish()
  return value
}

/** The border between the two ways of saying no: what `read` throws as malformed comes back as a value. */
export const orMalformed = <T>(read: () => T): T | Malformed => {
  try {
    return read()
  } catch (error) {
    if (error instanceof MalformedDer) return { kind: 'malformed', why: error.message }
    throw error
  }
}

export class DerReader {
  readonly #bytes: Uint8Array
  readonly #end: number
  readonly #depth: number
  #at: number

  constructor(bytes: Uint8Array, from: number, to: number, depth: number) {
    if (depth > deepest) malformed('nested too deeply')
    this.#bytes = bytes
    this.#at = from
    this.#end = to
    this.#depth = depth
  }

  get atEnd(): boolean {
    return this.#at === this.#end
  }

  /** The tag of the next element, or -1 at the end. */
  get next(): number {
    return this.#at < this.#end ? (this.#bytes[this.#at] ?? -1) : -1
  }

  finish(): void {
    if (this.#at !== this.#end) malformed('bytes left over')
  }

  /** The content of the next element, which must have this tag. */
  content(tag: number): Uint8Array {
    const start = this.#open(tag)
    return this.#bytes.subarray(start, this.#at)
  }

  /** The elements inside the next element, which must have this tag. */
  inside(tag: number): DerReader {
    const start = this.#open(tag)
    return new DerReader(this.#bytes, start, this.#at, this.#depth + 1)
  }

  /** The bytes of the next element, header included. Its content is not parsed. */
  whole(tag: number): Uint8Array {
    const from = this.#at
    this.#open(tag)
    return this.#bytes.subarray(from, this.#at)
  }

  /** The bytes of each element of a SET OF; DER demands them in the order of their bytes. */
  setOf(tag: number): Uint8Array[] {
    const inside = this.inside(tag)
    const members: Uint8Array[] = []
    while (!inside.atEnd) {
      const member = inside.whole(inside.next)
      const before = members.at(-1)
      if (before !== undefined && Buffer.compare(before, member) > 0) malformed('a set out of order')
      members.push(member)
    }
    return members
  }

  /** A reader over bytes taken from this one, no shallower than it. */
  over(bytes: Uint8Array): DerReader {
    return new DerReader(bytes, 0, bytes.length, this.#depth + 1)
  }

  /** Moves past the next element and returns where its content starts. */
  #open(tag: number): number {
    const found = this.#byte()
    if (found !== tag) malformed(`expected ${tagName(tag)}, found ${tagName(found)}`)
    if ((tag & 0x1f) === 0x1f) malformed('a tag of more than one byte')
    const length = this.#length()
    const start = this.#at
    if (length > this.#end - start) malformed('a length beyond the end')
    this.#at = start + length
    return start
  }

  #length(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    if (first === 0x80) malformed('an indefinite length')
    const count = first & 0x7f
    if (count > 3) malformed('a giant length')
    let length = 0
    for (let i = 0; i < count; i++) length = (length << 8) | this.#byte()
    if (length < 0x80 || length < 1 << (8 * (count - 1))) malformed('a length not in its shortest form')
    return length
  }

  #byte(): number {
    const byte = this.#at < this.#end ? this.#bytes[this.#at] : undefined
    if (byte === undefined) return malformed('cut short')
    this.#at++
    return byte
  }
}

const tagName = (tag: number): string => {
  const known = Object.entries(tags).find(([, value]) => value === tag)
  if (known !== undefined) return known[0]
  return tag >= 0x80 && tag < 0xc0 ? `[${tag & 0x1f}]` : `tag 0x${tag.toString(16)}`
}
