// How many connections of a listener one source may hold. A source is an IPv4 address or an IPv6 /64: a host chooses the
// rest of its IPv6 address as it likes.

import { formatIp, ipv6Groups, parseIp, unmapped } from './ip-address.ts'

export type SourceShares = {
  /** Whether one more connection of that source is within its share, with `free` connections left to all. */
  fits(source: string, free: number): boolean
  add(source: string): void
  remove(source: string): void
  held(source: string): number
}

/**
 * One source may hold as many connections as are left free. A single source thus gets at most half of them, and however
 * many sources there are, some are left for the next. `most` is a fixed limit below that; null: none.
 */
export const openSourceShares = (most: number | null): SourceShares => {
  const held = new Map<string, number>()
  const heldBy = (source: string): number => held.get(source) ?? 0
  return {
    fits: (source, free) => heldBy(source) < Math.min(most ?? Number.POSITIVE_INFINITY, Math.max(1, free)),
    add: (source) => void held.set(source, heldBy(source) + 1),
    remove(source) {
      const left = heldBy(source) - 1
      if (left > 0) held.set(source, left)
      else held.delete(source)
    },
    held: heldBy,
  }
}

/** The source that an address counts for. */
export const sourceOf = (address: string): string => {
  // An IPv4 address is its own source, and this is asked for every connection.
  if (!address.includes(':')) return address
  const [plain = ''] = address.toLowerCase().split('%')
  const parsed = parseIp(plain)
  if (parsed === null) return plain
  const bytes = unmapped(parsed)
  return bytes.length === 4 ? formatIp(bytes) : `${ipv6Groups(bytes).slice(0, 4).join(':')}::/64`
}
