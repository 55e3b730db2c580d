// Puts what a program of this host is to read in place: below a directory of the agent's own user, or through the helper.

import * as path from 'node:path'
import type { Replaced } from '#platform/file-generations.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import type { ProgramOf } from './check-generation.ts'

/** One generation of an output: everything in it belongs together, and appears at once. */
export type Generation = {
  readonly output: ConfigOutput
  /** PKCS#8, PEM. */
  readonly keyPem: string
  /** The leaf first. */
  readonly chainPem: string
  readonly rootsPem: string
  /** A list for every CA above the leaf, PEM, the issuing CA's first; then those of `authoritiesPem`. */
  readonly lists: readonly string[]
  /** CAs below the roots that are not above this leaf, but above those of others; empty where there are none. */
  readonly authoritiesPem: string
}

/** Where an output is: in a directory of this host, written by the agent's own user or by the helper. */
export type Place = {
  readonly by: 'agent' | 'helper'
  readonly directory: string
  /** The mount point that it was below when it was first used; left out: not known. */
  readonly mount?: string
}

/** The node of this host. */
export type NodeOfPrograms = Omit<ProgramOf, 'output'>

/** `serial`: of the leaf that programs read there; null: they find none. */
export type FoundOutput = Place & { readonly output: string; readonly serial: string | null }

export type Found = {
  readonly outputs: readonly FoundOutput[]
  /** Why there may be more; null: that is all. `LeftBehind` where trying again is of no use. */
  readonly more: Error | null
}

/** `why`: for people, with what to do. */
export type NoPlace = { readonly by: 'nobody'; readonly why: string }

export const pathOf = (output: string, { directory }: Place): string => path.join(directory, output)

/** Whoever wrote there: files of one are the files of the other. */
export const samePlace = (one: Place, other: Place): boolean => one.directory === other.directory

/** What was written cannot be removed until the owner of the host changes something. The message names the files, and what to do. */
export class LeftBehind extends Error {}

export type Publisher = {
  /** In the place that `placeOf` gave. What a failure throws says what to do about it, and leaves the generation before in place. */
  publish(generation: Generation, place: Place): Promise<Replaced>
  /** Also where there is none. Throws `LeftBehind` where trying again is of no use. */
  remove(output: string, place: Place): Promise<void>
  /** The directory in which programs find the output, which stays the same over all generations. */
  placeOf(output: ConfigOutput): Place | NoPlace
  /** Outputs of this node that have files in the places of this host, wanted or not. Those of other nodes are left out. */
  found(of: NodeOfPrograms): Found
  /** By its name in agent.toml. Throws when it failed or took too long. */
  reload(name: string): Promise<void>
}
