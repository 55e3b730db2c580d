// What this plane knows of the journal, outside the database: two small files in the data folder.
//
//   journal-heads.json  the newest place of every chain that this plane has read or written; a lower bound, written every
//                       second while there is something new
//   store-doubt.json    that the store has lost commits; written before anything else follows from it, removed when an
//                       operator has confirmed the store, and renamed when a start finds those commits in the store again
//
// Neither is a secret. A database that is set back cannot set these back with it, so a restart forgets nothing. Each carries
// a checksum: a hash with one flipped bit would otherwise put a whole store in doubt.
//
// Processes of `muster plane --replicas` share one data folder. Each has files of its own, with its number in the name
// (journal-heads.2.json): a process that was paused must not replace what another has learned since. A start reads all.

import * as path from 'node:path'
import type { Loss } from '#domain/continuity/continuity.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { isoTime } from '#platform/clock.ts'
import { flushFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import type { Log } from '#platform/log.ts'
import { renamePath } from '#platform/paths.ts'

const headsFile = 'journal-heads'
const doubtFile = 'store-doubt'

export type KeptHeads = {
  readonly domain: string
  /** Of the domain's first root: domains may share a name. Null: it was not known yet. */
  readonly root: string | null
  readonly lineage: number
  readonly heads: readonly SeenHead[]
}
export type KeptDoubt = Loss & {
  readonly domain: string
  /** What was revoked since, in words; absent: it was not recorded. */
  readonly meanwhile?: readonly string[]
}

export type WitnessFiles = {
  /** Of all processes: the newest place of every chain under the newest lineage. A file that is damaged is left out and logged. */
  heads(): KeptHeads | null
  /** The one with the newest lineage, with what was revoked meanwhile as all processes know it. */
  doubt(): KeptDoubt | null
  keepHeads(heads: KeptHeads): void
  keepDoubt(doubt: KeptDoubt): void
  /** Of all processes: what ends it for one ends it for all. */
  dropDoubt(): void
  /** Out of force, and kept as evidence under the name of `asideName`. */
  setDoubtAside(nowMs: number): void
}

/**
 * A full disk must not stop the plane: a failed write is tried again with the next change.
 * `replica`: the number of this process where several share the folder.
 */
export const openWitnessFiles = (folder: string, log: Log, replica: number | null = null): WitnessFiles => {
  const at = (name: string): string => path.join(folder, name)
  const ownName = (kind: string): string => (replica === null ? `${kind}.json` : `${kind}.${replica}.json`)
  const everyName = (kind: string): readonly string[] =>
    namesIn(folder).filter((name) => name.startsWith(kind) && /^(\.\d+)?\.json$/.test(name.slice(kind.length)))
  const read = <T>(name: string, isWhole: (value: Partial<T>) => boolean): T | null => {
    const text = readFileIfAny(at(name))
    if (text === null) return null
    try {
      const { sum, ...value } = JSON.parse(text) as Partial<T> & { readonly sum?: unknown }
      if (sum === sumOf(value) && isWhole(value as Partial<T>)) return value as T
    } catch {
      // As below.
    }
    log.error(
      { file: at(name), kept: keepDamaged(folder, name) },
      'a file about the journal is damaged and is not used',
    )
    return null
  }
  const readEvery = <T extends { readonly lineage: number }>(
    kind: string,
    isWhole: (value: Partial<T>) => boolean,
  ): readonly T[] =>
    everyName(kind)
      .flatMap((name) => read<T>(name, isWhole) ?? [])
      .toSorted((one, other) => other.lineage - one.lineage)
  const write = (kind: string, value: object): void => {
    const name = ownName(kind)
    try {
      replaceFile(at(name), `${JSON.stringify({ ...value, sum: sumOf(value) }, null, 2)}\n`, 0o600)
    } catch (error) {
      log.warn({ err: error, file: at(name) }, 'a file about the journal could not be written')
    }
  }
  return {
    heads: () => merged(readEvery<KeptHeads>(headsFile, isWholeHeads)),
    doubt: () => withAllMeanwhile(readEvery<KeptDoubt>(doubtFile, isWholeDoubt)),
    keepHeads: (heads) => write(headsFile, heads),
    keepDoubt: (doubt) => write(doubtFile, doubt),
    dropDoubt: () => everyName(doubtFile).forEach((name) => removeFile(at(name))),
    setDoubtAside(nowMs) {
      const aside = asideName(nowMs).replace(/\.json$/, '')
      for (const name of everyName(doubtFile)) renamePath(at(name), at(name.replace(doubtFile, aside)))
      flushFolder(folder)
    },
  }
}

/** Out of the way of the next one that is written, as evidence. Returns its new name; null: it could not be kept. */
const keepDamaged = (folder: string, name: string): string | null => {
  const taken = new Set(namesIn(folder))
  const numbers = Array.from({ length: taken.size + 1 }, (_, index) => (index === 0 ? '' : `.${index + 1}`))
  const kept = numbers.map((number) => `${name}.damaged${number}`).find((one) => !taken.has(one)) ?? `${name}.damaged`
  try {
    renamePath(path.join(folder, name), path.join(folder, kept))
    return kept
  } catch {
    return null
  }
}

/** For people: what a start could not compare with the store. Until they have looked, and moved the file away. */
export const damagedWitnesses = (folder: string): readonly string[] =>
  namesIn(folder)
    .filter((name) => /^(journal-heads|store-doubt)[.\d]*\.json\.damaged/.test(name))
    .map((name) =>
      name.startsWith(headsFile)
        ? `what this plane remembered of the journal was damaged (${name} in the data folder), so a start could not tell whether the store has lost commits: muster journal verify, check the disk, then move the file away`
        : `a doubt about the store was on record in a file that is damaged (${name} in the data folder): find out whether the store has lost commits, then move the file away`,
    )

export const asideName = (nowMs: number): string => `${doubtFile}-${isoTime(nowMs).replaceAll(':', '-')}.json`

const withAllMeanwhile = (kept: readonly KeptDoubt[]): KeptDoubt | null => {
  const [first] = kept
  const known = kept.flatMap(({ meanwhile }) => (meanwhile === undefined ? [] : [meanwhile]))
  return first === undefined || known.length === 0
    ? (first ?? null)
    : { ...first, meanwhile: [...new Set(known.flat())] }
}

/** `kept`: newest lineage first. */
const merged = (kept: readonly KeptHeads[]): KeptHeads | null => {
  const [first] = kept
  if (first === undefined) return null
  const newest = new Map<string, SeenHead>()
  for (const { domain, root, lineage, heads } of kept) {
    if (domain !== first.domain || root !== first.root || lineage !== first.lineage) continue
    for (const head of heads) if (head.sequence > (newest.get(head.chain)?.sequence ?? -1)) newest.set(head.chain, head)
  }
  return { ...first, heads: [...newest.values()] }
}

const isWholeHeads = ({ domain, root, lineage, heads }: Partial<KeptHeads>): boolean =>
  typeof domain === 'string' &&
  (typeof root === 'string' || root === null) &&
  Number.isSafeInteger(lineage) &&
  Array.isArray(heads) &&
  heads.every(isHead)

const isWholeDoubt = ({ domain, lineage, chain, sequence, meanwhile }: Partial<KeptDoubt>): boolean =>
  (meanwhile === undefined || Array.isArray(meanwhile)) &&
  typeof domain === 'string' &&
  Number.isSafeInteger(lineage) &&
  typeof chain === 'string' &&
  Number.isSafeInteger(sequence)

const sumOf = (value: object): string => sha256Hex(JSON.stringify(value))

const isHead = (value: unknown): value is SeenHead => {
  if (typeof value !== 'object' || value === null) return false
  const { chain, sequence, hash } = value as Partial<SeenHead>
  return typeof chain === 'string' && Number.isSafeInteger(sequence) && /^[0-9a-f]{64}$/.test(hash ?? '')
}
