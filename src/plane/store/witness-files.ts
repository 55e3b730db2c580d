// What this plane knows of the journal, outside the database: two small files in the data folder.
//
//   journal-heads.json  the newest place of every chain that this plane has read or written; a lower bound, written every
//                       second while there is something new
//   store-doubt.json    that the store has lost commits; written before anything else follows from it, removed when an
//                       operator has confirmed the store, and renamed when a start finds those commits in the store again
//
// Neither is a secret. A database that is set back cannot set these back with it, so a restart forgets nothing. Each carries
// a checksum: a hash with one flipped bit would otherwise put a whole store in doubt.

import * as path from 'node:path'
import type { Finding } from '#domain/continuity.ts'
import type { SeenHead } from '#domain/sighting.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { isoTime } from '#platform/clock.ts'
import { flushFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { renamePath } from '#platform/paths.ts'

const headsFile = 'journal-heads.json'
const doubtFile = 'store-doubt.json'

export type KeptHeads = {
  readonly domain: string
  /** Of the domain's first root: domains may share a name. Null: it was not known yet. */
  readonly root: string | null
  readonly lineage: number
  readonly heads: readonly SeenHead[]
}
export type KeptDoubt = Finding & { readonly domain: string }

export type WitnessFiles = {
  /** Null: there is none, or it cannot be read, which is logged. */
  heads(): KeptHeads | null
  doubt(): KeptDoubt | null
  keepHeads(heads: KeptHeads): void
  keepDoubt(doubt: KeptDoubt): void
  dropDoubt(): void
  /** Out of force, and kept as evidence. Returns its new name. */
  setDoubtAside(nowMs: number): string
}

/** A disk that takes no more must not stop the plane: what could not be written is tried again with the next change. */
export const openWitnessFiles = (folder: string, log: Log): WitnessFiles => {
  const at = (name: string): string => path.join(folder, name)
  const read = <T>(name: string, isWhole: (value: Partial<T>) => boolean): T | null => {
    const text = readFileIfAny(at(name))
    if (text === null) return null
    try {
      const { sum, ...value } = JSON.parse(text) as Partial<T> & { readonly sum?: unknown }
      if (sum === sumOf(value) && isWhole(value as Partial<T>)) return value as T
    } catch {
      // As below.
    }
    log.error({ file: at(name) }, 'a file about the journal is damaged and is not used')
    return null
  }
  const write = (name: string, value: object): void => {
    try {
      replaceFile(at(name), `${JSON.stringify({ ...value, sum: sumOf(value) }, null, 2)}\n`, 0o600)
    } catch (error) {
      log.warn({ err: error, file: at(name) }, 'a file about the journal could not be written')
    }
  }
  return {
    heads: () =>
      read<KeptHeads>(
        headsFile,
        ({ domain, root, lineage, heads }) =>
          typeof domain === 'string' &&
          (typeof root === 'string' || root === null) &&
          Number.isSafeInteger(lineage) &&
          Array.isArray(heads) &&
          heads.every(isHead),
      ),
    doubt: () =>
      read<KeptDoubt>(
        doubtFile,
        ({ domain, lineage, chain, sequence }) =>
          typeof domain === 'string' &&
          Number.isSafeInteger(lineage) &&
          typeof chain === 'string' &&
          Number.isSafeInteger(sequence),
      ),
    keepHeads: (heads) => write(headsFile, heads),
    keepDoubt: (doubt) => write(doubtFile, doubt),
    dropDoubt: () => removeFile(at(doubtFile)),
    setDoubtAside(nowMs) {
      const name = `store-doubt-${isoTime(nowMs).replaceAll(':', '-')}.json`
      renamePath(at(doubtFile), at(name))
      flushFolder(folder)
      return name
    },
  }
}

const sumOf = (value: object): string => sha256Hex(JSON.stringify(value))

const isHead = (value: unknown): value is SeenHead => {
  if (typeof value !== 'object' || value === null) return false
  const { chain, sequence, hash } = value as Partial<SeenHead>
  return typeof chain === 'string' && Number.isSafeInteger(sequence) && /^[0-9a-f]{64}$/.test(hash ?? '')
}
