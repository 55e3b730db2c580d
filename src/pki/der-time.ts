// Times as RFC 5280 wants them: whole seconds, UTC, two-digit years until 2049 and four digits from 2050 on.

import { isoTime, parseIsoTime } from '#platform/clock.ts'
import { type DerReader, malformed, tags } from './der.ts'
import { readAscii } from './der-values.ts'
import { type Der, text } from './der-writer.ts'

const year2050Ms = 2_524_608_000_000
const year10000Ms = 253_402_300_800_000

/** Certificates know seconds: this is the time a certificate will show for `ms`. */
export const wholeSecondMs = (ms: number): number => Math.floor(ms / 1000) * 1000

export const time = (ms: number): Der => {
  const digits = digitsOf(ms)
  return ms < year2050Ms ? text(tags.utcTime, digits.slice(2)) : text(tags.generalizedTime, digits)
}

/** OCSP writes every year with four digits. */
export const generalizedTime = (ms: number): Der => text(tags.generalizedTime, digitsOf(ms))

const digitsOf = (ms: number): string => {
  if (!(ms >= 0 && ms < year10000Ms)) throw new RangeError('a time outside of what certificates can say')
  const iso = isoTime(ms)
  const day = iso.slice(0, 4) + iso.slice(5, 7) + iso.slice(8, 10)
  return day + iso.slice(11, 13) + iso.slice(14, 16) + iso.slice(17, 19) + 'Z'
}

export const readTime = (reader: DerReader): number => {
  const short = reader.next === tags.utcTime
  const digits = readAscii(reader, short ? tags.utcTime : tags.generalizedTime)
  const full = short ? (digits < '50' ? '20' : '19') + digits : digits
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full)
  if (parts === null) return malformed('a time that is not in the one form allowed')
  const [, year, month, day, hour, minute, second] = parts
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const ms = parseIsoTime(iso)
  // A date such as February 30 would roll over into March.
  if (ms === null || isoTime(ms) !== iso) return malformed('a time that does not exist')
  if (!short && ms < year2050Ms) malformed('a time before 2050 written the long way')
  return ms
}
