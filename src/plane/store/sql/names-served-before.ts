// The names that planes earlier than 0.4.0 have served. Then no row said whose a name is; the entries about their certificates did.

import { claimedName, type NameClaim } from '#domain/programs/name-claim.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { encodeRow, type EncodedRow } from '#plane/store/commit/row-tables.ts'

/** The type of the entries that are read. */
export const servedEntryType = 'server_certificate.issued'

type Served = { readonly sinceMs: number; readonly untilMs: number }

/**
 * The claims of the plane, in the form in which names are compared now: 0.3 kept ::ffff:192.0.2.7 apart from 192.0.2.7. A name of
 * certificates that have ended is not served any more. `entries`: as the journal has them; one that cannot be read is passed over.
 */
export const claimsOnServed = (entries: readonly string[], nowMs: number): readonly EncodedRow[] => {
  const served = new Map<string, Served>()
  for (const bytes of entries) {
    const { names, sinceMs, untilMs } = issuedIn(bytes)
    for (const name of names.map(claimedName)) {
      const known = served.get(name) ?? { sinceMs, untilMs }
      served.set(name, {
        sinceMs: Math.min(known.sinceMs, sinceMs),
        untilMs: Math.max(known.untilMs, untilMs),
      })
    }
  }
  return [...served].map(([name, { sinceMs, untilMs }]) => {
    const dropped = untilMs > nowMs ? null : { atMs: nowMs, by: 'system:upgrade' }
    const claim: NameClaim = {
      name,
      holder: { kind: 'plane', use: 'certificate', joinStrings: 0, namedAtMs: null, retaken: false, dropped },
      sinceMs,
      by: 'system:upgrade',
      carriedUntilMs: 0,
    }
    return encodeRow('name-claim', claim)
  })
}

const issuedIn = (bytes: string): Served & { readonly names: readonly string[] } => {
  const { atMs, body } = fieldsOf(jsonIn(bytes))
  const { names, not_after: notAfter } = fieldsOf(body)
  return {
    names: Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [],
    sinceMs: typeof atMs === 'number' ? atMs : 0,
    untilMs: typeof notAfter === 'string' ? (parseIsoTime(notAfter) ?? 0) : 0,
  }
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

const jsonIn = (bytes: string): unknown => {
  try {
    return JSON.parse(bytes)
  } catch {
    return null
  }
}
