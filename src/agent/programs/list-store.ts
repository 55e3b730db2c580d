// What this node knows of the authorities above programs, and what is in place on the host. No secrets, so it is on the disk also
// where keys are not. The programs roots in it are for programs: nothing that speaks to a plane reads them.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { parseCrl, type ParsedList } from '#pki/parse-crl.ts'
import { fromPem } from '#pki/pem.ts'
import { makeFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import { matchesSchema, recordOf } from '#platform/json-schema.ts'
import { attempt, type Kept, type NotKept } from '#agent/state/identity-keeper.ts'
import { longestProgramList, OutputName } from '#wire/programs/programs-api.ts'

const pem = Type.String({ maxLength: longestProgramList })

const ProgramLedger = Type.Object({
  version: Type.Literal(1),
  /** PEM, one each. */
  roots: Type.Array(pem),
  /** Of outside issuers: programs trust them as well, and nobody here has lists of theirs. Left out by agents before 0.7. */
  outsideRoots: Type.Optional(Type.Array(pem)),
  /** Authorities between roots and leaves, as far as the plane has named them. */
  authorities: Type.Array(pem),
  lists: Type.Array(pem),
  /** Outputs that have files on this host, and where. */
  placed: Type.Array(
    Type.Object({
      output: OutputName,
      by: Type.Enum(['agent', 'helper']),
      directory: Type.String(),
      /** Of the directory, where the agent writes itself: while something else is mounted there its files cannot be removed. */
      mount: Type.Optional(Type.String()),
      /** They are to be removed whatever a configuration says: the node they were made for was revoked. */
      withdrawn: Type.Boolean(),
    }),
  ),
  /** The list of them was damaged, and those that lie in the places of this host have not been looked for since. */
  placedUnknown: Type.Optional(Type.Boolean()),
  /** By output, what its program has loaded and from where, and when it is to load newer lists: see build-generation.ts. */
  reloaded: recordOf(OutputName, Type.Object({ mark: Type.String(), againAtMs: Type.Number() })),
})
export type ProgramLedger = Static<typeof ProgramLedger>
export type PlacedOutput = ProgramLedger['placed'][number]

const emptyLedger: ProgramLedger = {
  version: 1,
  roots: [],
  authorities: [],
  lists: [],
  placed: [],
  reloaded: {},
}

export type ListStore = {
  current(): ProgramLedger
  /** The lists in it, parsed once. */
  lists(): readonly KnownList[]
  /** The same value for as long as they are the same: what is built is remembered by its parts. */
  outsideRoots(): readonly string[]
  /** In force at once, whether or not it could be written; `retry` writes it again. */
  keep(change: Partial<Omit<ProgramLedger, 'version'>>): Kept
  /** Reads it, where that has not worked yet. */
  retry(): Kept
  /** The disk has not let it be read yet. What is on it stays, and until `retry` has read it nothing else is written. */
  isUnread(): boolean
}

/** What is at the place of the ledger is none. Lists can be had again; which outputs have files here is looked for on the host. */
const damaged: ProgramLedger = { ...emptyLedger, placedUnknown: true }

export const openListStore = (stateFolder: string): ListStore => {
  const file = path.join(stateFolder, 'program-lists.json')
  const read = attemptToRead(file)
  let ledger = 'unread' in read ? emptyLedger : read.ledger
  let unread: NotKept | null = 'unread' in read ? read.unread : null
  let parsed = listsIn(ledger.lists)
  let persisted = true
  const readLate = (): Kept => {
    const late = attemptToRead(file)
    if ('unread' in late) return (unread = late.unread)
    unread = null
    // It was there: whatever became of it, the outputs in it may have files on the host.
    const before = late.ledger === emptyLedger ? damaged : late.ledger
    // What was received meanwhile is newer. What was placed meanwhile is nothing, because it could not be noted.
    const { roots, outsideRoots, authorities, lists } = ledger
    ledger = {
      ...before,
      ...(roots.length > 0 && { roots, ...(outsideRoots && { outsideRoots }) }),
      ...(lists.length > 0 && { authorities, lists }),
    }
    parsed = listsIn(ledger.lists)
    return save()
  }
  const save = (): Kept => {
    if (unread !== null) return unread
    const kept = attempt(() => {
      makeFolder(stateFolder, 0o700)
      replaceFile(file, JSON.stringify(ledger, null, 1) + '\n', 0o600)
    })
    persisted = kept.persisted
    return kept
  }
  return {
    current: () => ledger,
    lists: () => parsed,
    outsideRoots: () => ledger.outsideRoots ?? noRoots,
    keep: (change) => {
      ledger = { ...ledger, ...change }
      if (change.lists !== undefined) parsed = listsIn(ledger.lists)
      return save()
    },
    retry: () => {
      if (unread !== null) return readLate()
      return persisted ? { persisted } : save()
    },
    isUnread: () => unread !== null,
  }
}

const noRoots: readonly string[] = []

export type KnownList = { readonly pem: string } & Pick<
  ParsedList,
  'authorityKeyId' | 'number' | 'thisUpdateMs' | 'nextUpdateMs' | 'entries'
>

/** Of lists that were checked when they were received; what cannot be read any more is left out. */
export const listsIn = (pems: readonly string[]): readonly KnownList[] =>
  pems.flatMap((pem) => {
    const der = fromPem('X509 CRL', pem)
    const list = der === null ? null : parseCrl(der)
    if (list === null || list.kind === 'malformed') return []
    const { authorityKeyId, number, thisUpdateMs, nextUpdateMs, entries } = list
    return [{ pem, authorityKeyId, number, thisUpdateMs, nextUpdateMs, entries }]
  })

/** A disk that fails, or does not let the agent in, says nothing about what is in the file. */
const attemptToRead = (file: string): { readonly ledger: ProgramLedger } | { readonly unread: NotKept } => {
  try {
    const text = readFileIfAny(file)
    return { ledger: text === null ? emptyLedger : ledgerIn(text) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { unread: { persisted: false, detail: `${file} cannot be read: ${why}` } }
  }
}

const ledgerIn = (text: string): ProgramLedger => {
  try {
    const value: unknown = JSON.parse(text)
    return matchesSchema(ProgramLedger, value) ? value : damaged
  } catch {
    return damaged
  }
}
