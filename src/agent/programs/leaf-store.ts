// The keys and leaves of programs, and requests for leaves that may have reached the plane. In a file of the agent's own user, or
// in memory only, as the profile says.

import * as path from 'node:path'
import { Type } from 'typebox'
import { keyTypes } from '#domain/core/profile.ts'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { attempt, type Kept } from '#agent/state/identity-keeper.ts'
import { OutputName } from '#wire/programs/programs-api.ts'
import type { LeafTerms, LeafTimes } from './wanted-outputs.ts'

export type ProgramLeaf = LeafTerms & LeafTimes & { readonly keyPem: string; readonly chainPem: string }

/** Repeated as it is until it is answered: the plane then gives the same leaf. */
export type LeafRequest = LeafTerms & { readonly keyPem: string; readonly csrPem: string }

export type Leaves = {
  /** Whose programs they are; null: there are none yet. */
  readonly of: { readonly domain: string; readonly node: string } | null
  readonly leaves: readonly ProgramLeaf[]
  readonly requests: readonly LeafRequest[]
}

export const noLeaves: Leaves = { of: null, leaves: [], requests: [] }

export const withLeaf = (all: Leaves, leaf: ProgramLeaf): Leaves => ({
  ...all,
  leaves: [...all.leaves.filter(({ output }) => output !== leaf.output), leaf],
  requests: all.requests.filter(({ output }) => output !== leaf.output),
})

export const withLeafRequest = (all: Leaves, output: string, request: LeafRequest | null): Leaves => ({
  ...all,
  requests: [...all.requests.filter((other) => other.output !== output), ...(request === null ? [] : [request])],
})

export const withoutOutput = (all: Leaves, output: string): Leaves => ({
  ...all,
  leaves: all.leaves.filter((leaf) => leaf.output !== output),
  requests: all.requests.filter((request) => request.output !== output),
})

export type LeafStore = {
  current(): Leaves
  /** In force at once, whether or not it could be written; `retry` writes it again. */
  keep(next: Leaves): Kept
  retry(): Kept
}

/**
 * `onDisk`: asked before each write and each `retry`; false: nothing of it is on the disk afterwards, also of what was kept while it
 * was true, or by an agent before this one. `write`: how what must not be lost is written.
 */
export const openLeafStore = (
  stateFolder: string,
  onDisk: () => boolean,
  write: (act: () => void) => void,
): LeafStore => {
  const file = path.join(stateFolder, 'programs.json')
  let leaves = onDisk() ? readLeaves(file) : noLeaves
  /** As the last write that worked has left the file; null: none has yet. */
  let wasOnDisk: boolean | null = onDisk() ? true : null
  const save = (): Kept => {
    const goesToDisk = onDisk()
    const kept = attempt(() => {
      if (!goesToDisk || leaves === noLeaves) return erase(file)
      makeFolder(stateFolder, 0o700)
      write(() => replaceFile(file, JSON.stringify({ version, ...leaves }, null, 1) + '\n', 0o600))
    })
    wasOnDisk = kept.persisted ? goesToDisk : null
    return kept
  }
  if (wasOnDisk === null) save()
  return {
    current: () => leaves,
    keep: (next) => {
      leaves = next
      return save()
    },
    retry: () => (wasOnDisk === onDisk() ? { persisted: true } : save()),
  }
}

const erase = (file: string): void => {
  for (const each of [`${file}.new`, file]) if (readFileIfAny(each) !== null) removeFile(each)
}

const version = 1
const text = Type.String({ maxLength: 256 * 1024 })
const terms = {
  output: OutputName,
  epoch: Type.Integer({ minimum: 0 }),
  keyType: Type.Enum([...keyTypes]),
  usage: Type.Enum(['client', 'server', 'both']),
  names: Type.Array(text),
}
const Stored = Type.Object({
  version: Type.Literal(version),
  of: Type.Union([Type.Object({ domain: text, node: text }), Type.Null()]),
  leaves: Type.Array(
    Type.Object({
      ...terms,
      serial: text,
      issuedAtMs: Type.Number(),
      notAfterMs: Type.Number(),
      keyPem: text,
      chainPem: text,
    }),
  ),
  requests: Type.Array(Type.Object({ ...terms, keyPem: text, csrPem: text })),
})

/** A damaged one counts as none: every leaf in it can be had again. */
const readLeaves = (file: string): Leaves => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(file) ?? 'null')
    if (!matchesSchema(Stored, value)) return noLeaves
    const { of, leaves, requests } = value
    return { of, leaves, requests }
  } catch {
    return noLeaves
  }
}
