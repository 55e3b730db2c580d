// What is wrong with a node that has no network, short enough to be read over a telephone: MX-XXXX-XXXX-XXXX. Twelve
// characters of Crockford's base 32: eleven of facts, coarse on purpose, and one that gives away a mistyped or swapped one.
//
// The lists and bounds here are a promise, like wire formats: entries are only ever added, in free places.

import type { FailureClass } from '#domain/core/node.ts'

export type ShortFacts = {
  readonly class: ShortClass | null
  readonly place: ShortPlace
  /** What is left of the certificate; below 0: since when it is expired; null: there is none. */
  readonly certificateLeftMs: number | null
  /** How far the machine's clock is behind; below 0: ahead; null: not known. */
  readonly clockBehindMs: number | null
  readonly attempts: number
  /** The system's error or the plane's refusal. */
  readonly cause: string | null
  readonly freeBytes: number | null
  /** Since it last spoke with the plane; null: never, as far as it knows. */
  readonly silentMs: number | null
  /** See nodeMark; 0: it has no identity. */
  readonly nodeMark: number
}

/** At least `from` and less than `to`. */
export type Range = { readonly from: number; readonly to: number }

export type DecodedCode = Pick<ShortFacts, 'class' | 'place' | 'nodeMark'> & {
  readonly certificateLeftMs: Range | null
  readonly clockBehindMs: Range | null
  readonly attempts: Range
  readonly cause: string | null
  readonly freeBytes: Range | null
  readonly silentMs: Range | null
}

export type ShortClass = FailureClass | 'node_observability_disk_pressure'

const classes: readonly (ShortClass | null)[] = [
  null,
  'endpoint_unreachable',
  'server_tls_untrusted',
  'cert_expired',
  'identity_revoked_or_fenced',
  'endpoint_profile_drift',
  'recovery_enrollment_blocked',
  'disk_full',
  'clock_skew',
  'node_observability_disk_pressure',
  'credentials_damaged',
]

export const shortPlaces = [
  'enrollment',
  'channel',
  'renewal',
  'recovery',
  'rehearsal',
  'endpoints',
  'storage',
  'clock',
] as const
export type ShortPlace = (typeof shortPlaces)[number]

const otherCause = 'other'
const causes: readonly (string | null)[] = [
  null,
  otherCause,
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EACCES',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'NODE_REVOKED',
  'NODE_QUARANTINED',
  'NODE_NOT_ENROLLED',
  'CLIENT_CERT_EXPIRED',
  'CLIENT_CERT_DENIED',
  'CLIENT_CERT_UNKNOWN',
  'DUPLICATE_IDENTITY',
  'SERIAL_MISMATCH',
  'RECOVERY_UNKNOWN',
  'RECOVERY_DENIED',
  'RECOVERY_BUDGET_SPENT',
  'APPROVAL_REQUIRED',
  'ALREADY_ACTIVE',
  'TOKEN_INVALID',
  'TOKEN_EXPIRED',
  'TOKEN_USED',
  'BUSY',
  'REPAIR_TOKEN_INVALID',
]

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day
const kib = 1024

const certificateBounds = [
  ...[-30 * day, -7 * day, -day, -6 * hour, -hour, -5 * minute],
  ...[0, 5 * minute, hour, 6 * hour, day, 3 * day, 7 * day, 30 * day],
]
const clockBounds = [
  ...[-5 * year, -year, -30 * day, -day, -hour, -10 * minute, -minute],
  ...[minute, 10 * minute, hour, day, 30 * day, year, 5 * year],
]
const attemptBounds = [1, 2, 4, 8, 16, 64, 256]
const freeBounds = [64 * kib, kib ** 2, 16 * kib ** 2, 256 * kib ** 2, 4 * kib ** 3, 64 * kib ** 3]
const silentBounds = [
  ...[minute, 5 * minute, 15 * minute, hour, 3 * hour, 6 * hour, 12 * hour],
  ...[day, 3 * day, 7 * day, 30 * day, 90 * day, year, 5 * year],
]

/** In the order they are packed; together the 55 bits of eleven characters. */
const widths = [4, 3, 4, 4, 3, 5, 3, 4, 25] as const

export const encodeShortCode = (facts: ShortFacts): string => {
  const cause = causes.indexOf(facts.cause)
  const values = [
    classes.indexOf(facts.class),
    shortPlaces.indexOf(facts.place),
    levelOrNone(facts.certificateLeftMs, certificateBounds),
    levelOrNone(facts.clockBehindMs, clockBounds),
    level(facts.attempts, attemptBounds),
    cause === -1 ? causes.indexOf(otherCause) : cause,
    levelOrNone(facts.freeBytes, freeBounds),
    levelOrNone(facts.silentMs, silentBounds),
    facts.nodeMark,
  ]
  const packed = values.reduce((bits, value, index) => (bits << BigInt(widths[index] ?? 0)) | BigInt(value), 0n)
  const digits = Array.from({ length: dataDigits }, (_, index) =>
    Number((packed >> BigInt(5 * (dataDigits - 1 - index))) & 31n),
  )
  const text = [...digits, checkOf(digits)].map((digit) => alphabet[digit]).join('')
  return [prefix, text.slice(0, 4), text.slice(4, 8), text.slice(8)].join('-')
}

export type ParsedCode =
  | { readonly kind: 'code'; readonly facts: DecodedCode }
  /** Not the length or the characters of a code. */
  | { readonly kind: 'no-code' }
  /** A character is wrong, or two are swapped. */
  | { readonly kind: 'mistyped' }

/** Spaces, dashes and case do not matter, nor O for 0, I or L for 1. */
export const decodeShortCode = (typed: string): ParsedCode => {
  const bare = typed.toUpperCase().replace(/[\s-]/g, '')
  const text = bare.startsWith(prefix) && bare.length > codeDigits ? bare.slice(prefix.length) : bare
  const digits = [...text.replaceAll('O', '0').replace(/[IL]/g, '1')].map((character) => alphabet.indexOf(character))
  if (digits.length !== codeDigits || digits.includes(-1)) return { kind: 'no-code' }
  const data = digits.slice(0, dataDigits)
  if (checkOf(data) !== digits[dataDigits]) return { kind: 'mistyped' }
  const facts = factsOf(unpacked(data))
  return facts === null ? { kind: 'no-code' } : { kind: 'code', facts }
}

const unpacked = (digits: readonly number[]): number[] => {
  let packed = digits.reduce((bits, digit) => (bits << 5n) | BigInt(digit), 0n)
  return widths
    .toReversed()
    .map((width) => {
      const value = Number(packed & ((1n << BigInt(width)) - 1n))
      packed >>= BigInt(width)
      return value
    })
    .toReversed()
}

/** Null for a class this version does not know. */
const factsOf = (values: readonly number[]): DecodedCode | null => {
  const [what = 0, place = 0, certificate = 0, clock = 0, attempts = 0, cause = 0, free = 0, silent = 0, mark = 0] =
    values
  const found = classes[what]
  const where = shortPlaces[place]
  if (found === undefined || where === undefined) return null
  return {
    class: found,
    place: where,
    certificateLeftMs: rangeOrNone(certificate, certificateBounds),
    clockBehindMs: rangeOrNone(clock, clockBounds),
    attempts: range(attempts, attemptBounds),
    cause: causes[cause] ?? null,
    freeBytes: rangeOrNone(free, freeBounds),
    silentMs: rangeOrNone(silent, silentBounds),
    nodeMark: mark,
  }
}

const level = (value: number, bounds: readonly number[]): number => bounds.filter((bound) => value >= bound).length
const levelOrNone = (value: number | null, bounds: readonly number[]): number =>
  value === null ? 0 : 1 + level(value, bounds)
const range = (at: number, bounds: readonly number[]): Range => ({
  from: bounds[at - 1] ?? -Infinity,
  to: bounds[at] ?? Infinity,
})
const rangeOrNone = (at: number, bounds: readonly number[]): Range | null => (at === 0 ? null : range(at - 1, bounds))

const prefix = 'MX'
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const dataDigits = 11
const codeDigits = 12

/**
 * In the field of 32 elements every place has a weight of its own: another character, or two that changed places, always
 * changes the sum.
 */
const checkOf = (digits: readonly number[]): number => {
  let weight = 1
  return digits.reduce((sum, digit) => {
    weight = times(weight, 2)
    return sum ^ times(digit, weight)
  }, 0)
}

/** Modulo x^5 + x^2 + 1. */
const times = (a: number, b: number): number => {
  let product = 0
  for (let bit = 4; bit >= 0; bit--) {
    product = product << 1
    if ((product & 32) !== 0) product ^= 0b100101
    if (((b >> bit) & 1) === 1) product ^= a
  }
  return product
}

/**
 * Names the node to an operator who has the list of nodes: 25 bits, so that two of ten thousand nodes rarely share one. It is no
 * secret and proves nothing. Never 0.
 */
export const nodeMark = (domain: string, nodeId: string): number => {
  let hash = 0x811c9dc5
  for (const unit of `${domain}/${nodeId}`) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return Math.max(1, (hash ^ (hash >>> 16)) >>> 7)
}
