// The newest sighting of the plane's journal that this machine received, and a few earlier ones. The agent shows them to every
// plane it connects to: an older copy of the store does not know that it is older, and its nodes do. A sighting is no secret,
// and is worth less than any credential.

import * as path from 'node:path'
import { isLater, withEarlier } from '#domain/continuity/sighting.ts'
import { verifySignature } from '#pki/keys.ts'
import { makeFolder } from '#platform/files.ts'
import { openSlottedFile, readSlottedFile, type SlottedFile } from '#platform/slotted-file.ts'
import { longestEarlier } from '#wire/channel/channel.ts'
import { longestSighting, parseStatement, type StatementOf } from '#wire/core/statement.ts'
import type { AgentStorage } from '#agent/state/storage.ts'

export type SightingKeeper = {
  /** Of this domain, as the plane has signed it; null: none yet. */
  newest(domain: string): string | null
  /** Of the same domain and lineage, newest first, each once. */
  earlier(domain: string): readonly string[]
  /** Keeps it where it is later than what there is. False: it is not a sighting of this domain. */
  saw(statement: string, domain: string): boolean
  /**
   * After an enrollment, with the keys that sign this plane's statements. What none of them has signed is of a domain that
   * was made anew under the same name: it is dropped, since nothing this plane says would ever be later.
   */
  enrolledUnder(statementKeys: readonly string[]): void
}

const slotBytes = longestSighting + 64
const earlierSlotBytes = longestEarlier + 1024

type Kept = { readonly statement: string; readonly seen: StatementOf<'sighting'> }

/** `count`: how many have been replaced so far. */
type Earlier = { readonly count: number; readonly slots: readonly (string | null)[] }
const noneEarlier: Earlier = { count: 0, slots: [] }

/** In memory where the disk does not take it: in place, so that a full one takes the next as it took the first. */
export const openSightingKeeper = (
  stateFolder: string,
  storage: Pick<AgentStorage, 'pressure' | 'diagnosticWrite'>,
): SightingKeeper => {
  const newestFile = openKeptFile(path.join(stateFolder, 'sighting'), slotBytes, stateFolder, storage)
  const earlierFile = openKeptFile(path.join(stateFolder, 'sightings-earlier'), earlierSlotBytes, stateFolder, storage)
  let kept = keptIn(newestFile.read())
  let earlier = earlierIn(earlierFile.read(), kept)

  const ofDomain = (domain: string): Kept | null => (kept?.seen.domain === domain ? kept : null)
  const replace = (by: Kept): void => {
    const sameLineage = kept !== null && kept.seen.domain === by.seen.domain && kept.seen.lineage === by.seen.lineage
    const count = earlier.count + 1
    const next =
      kept !== null && sameLineage
        ? { count, slots: boundedSlots(withEarlier(earlier.slots, count, kept.statement)) }
        : noneEarlier
    // First: a crash in between leaves the newest among the earlier ones, and loses none.
    if (next !== earlier) earlierFile.write(JSON.stringify(next))
    earlier = next
    newestFile.write(by.statement)
    kept = by
  }

  return {
    newest: (domain) => ofDomain(domain)?.statement ?? null,
    earlier(domain) {
      const newest = ofDomain(domain)?.statement
      if (newest === undefined) return []
      return [...new Set(earlier.slots.filter((one) => one !== null && one !== newest))] as string[]
    },
    saw: (statement, domain) => {
      const seen = parsed(statement)
      if (seen?.domain !== domain) return false
      if (isLater(seen, ofDomain(domain)?.seen ?? null)) replace({ statement, seen })
      return true
    },
    enrolledUnder(statementKeys) {
      if (kept === null || statementKeys.length === 0 || isSignedBy(kept.statement, statementKeys)) return
      // First the newest: without it nothing counts as earlier.
      newestFile.write('')
      earlierFile.write(JSON.stringify(noneEarlier))
      kept = null
      earlier = noneEarlier
    },
  }
}

const isSignedBy = (text: string, statementKeys: readonly string[]): boolean => {
  const statement = parseStatement('sighting', text)
  return (
    statement !== null &&
    statementKeys.some((key) => verifySignature(Buffer.from(key, 'base64'), statement.signed, statement.signature))
  )
}

/** What does not fit is dropped, the oldest first. */
const boundedSlots = (slots: readonly (string | null)[]): readonly (string | null)[] => {
  let room = longestEarlier
  return slots.map((one) => {
    room -= (one ?? '').length
    return room >= 0 ? one : null
  })
}

type KeptFile = { read(): string | null; write(text: string): void }

const openKeptFile = (
  file: string,
  bytes: number,
  stateFolder: string,
  storage: Pick<AgentStorage, 'pressure' | 'diagnosticWrite'>,
): KeptFile => {
  let slots: SlottedFile | null = null
  let hasRoom = false
  return {
    /** A damaged one is like none: the plane sends another. */
    read() {
      try {
        const text = readSlottedFile(file, bytes)
        hasRoom = text !== null
        return text
      } catch {
        return null
      }
    },
    write(text) {
      // The room for it is taken once, and not while little is left.
      if (!hasRoom && storage.pressure()) return
      try {
        makeFolder(stateFolder, 0o700)
        slots ??= openSlottedFile(file, bytes)
        slots.write(text)
        hasRoom = true
        storage.diagnosticWrite(null)
      } catch (error) {
        storage.diagnosticWrite(error)
      }
    },
  }
}

const parsed = (statement: string): Kept['seen'] | null => parseStatement('sighting', statement)?.value ?? null

const keptIn = (statement: string | null): Kept | null => {
  const seen = statement === null ? null : parsed(statement)
  return statement === null || seen === null ? null : { statement, seen }
}

const earlierIn = (text: string | null, kept: Kept | null): Earlier => {
  if (text === null || kept === null) return noneEarlier
  try {
    const { count, slots } = JSON.parse(text) as Partial<Earlier>
    if (!Number.isSafeInteger(count) || !Array.isArray(slots)) return noneEarlier
    const { domain, lineage } = kept.seen
    const fits = (one: unknown): one is string => {
      const seen = typeof one === 'string' ? parsed(one) : null
      return seen !== null && seen.domain === domain && seen.lineage === lineage
    }
    return { count: count ?? 0, slots: slots.map((one) => (fits(one) ? one : null)) }
  } catch {
    return noneEarlier
  }
}
