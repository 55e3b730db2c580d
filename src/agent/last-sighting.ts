// How far the plane's journal had come when this machine last heard of it. It is shown to whatever plane is met next: an
// older copy of the store does not know that it is one, and its nodes do. No secret, and worth less than any credential.

import * as path from 'node:path'
import { isLater } from '#domain/sighting.ts'
import { makeFolder } from '#platform/files.ts'
import { openSlottedFile, readSlottedFile } from '#platform/slotted-file.ts'
import { longestSighting, parseStatement, type StatementOf } from '#wire/statement.ts'
import type { AgentStorage } from './storage.ts'

export type SightingKeeper = {
  /** Of this domain, as the plane has signed it; null: none yet. */
  newest(domain: string): string | null
  /** Keeps it where it is later than what there is. False: it is not a sighting of this domain. */
  saw(statement: string, domain: string): boolean
}

const slotBytes = longestSighting + 64

type Kept = { readonly statement: string; readonly seen: StatementOf<'sighting'> }

/** In memory where the disk does not take it: in place, so that a full one takes the next as it took the first. */
export const openSightingKeeper = (
  stateFolder: string,
  storage: Pick<AgentStorage, 'pressure' | 'diagnosticWrite'>,
): SightingKeeper => {
  const file = path.join(stateFolder, 'sighting')
  let slots: ReturnType<typeof openSlottedFile> | null = null
  let kept = readKept(file)
  let hasRoom = kept !== null

  const write = (statement: string): void => {
    // The room for it is taken once, and not while little is left.
    if (!hasRoom && storage.pressure()) return
    try {
      makeFolder(stateFolder, 0o700)
      slots ??= openSlottedFile(file, slotBytes)
      slots.write(statement)
      hasRoom = true
      storage.diagnosticWrite(null)
    } catch (error) {
      storage.diagnosticWrite(error)
    }
  }
  const ofDomain = (domain: string): Kept | null => (kept?.seen.domain === domain ? kept : null)

  return {
    newest: (domain) => ofDomain(domain)?.statement ?? null,
    saw: (statement, domain) => {
      const seen = parsed(statement)
      if (seen?.domain !== domain) return false
      if (!isLater(seen, ofDomain(domain)?.seen ?? null)) return true
      write(statement)
      kept = { statement, seen }
      return true
    },
  }
}

const parsed = (statement: string): Kept['seen'] | null => parseStatement('sighting', statement)?.value ?? null

/** A damaged one is like none: the plane sends another. */
const readKept = (file: string): Kept | null => {
  try {
    const statement = readSlottedFile(file, slotBytes)
    const seen = statement === null ? null : parsed(statement)
    return statement === null || seen === null ? null : { statement, seen }
  } catch {
    return null
  }
}
