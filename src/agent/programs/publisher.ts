// Puts what a program of this host is to read in place: below a directory of the agent's own user, or through the helper.

import type { ConfigOutput } from '#wire/programs/programs-api.ts'

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

export type Publisher = {
  /** What a failure throws says what to do about it, and leaves the generation before in place. */
  publish(generation: Generation): Promise<void>
  /** Also where there is none. */
  remove(output: string): Promise<void>
  /** The directory that programs read, which stays the same over all generations; null: this output has no place here. */
  placeOf(output: ConfigOutput): string | null
  /** By its name in agent.toml. Throws when it failed or took too long. */
  reload(name: string): Promise<void>
}
