// The addresses at which the plane was last reached, by name, so that a node survives the loss of a DNS name. They are only a
// hint: a server at such an address has to prove itself under the same name.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { isIP } from '#platform/resolve-name.ts'
import { makeFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'

export type KnownAddresses = {
  /** Where this name was reached, the latest first. */
  lastGood(name: string): readonly string[]
  worked(name: string, address: string): void
  /** It is reached without its name. True when that is new. */
  lost(name: string): boolean
  /** Its name leads to it. True when that is new and no other name is lost. */
  found(name: string): boolean
}

const mostNames = 16
const mostAddresses = 4

const Stored = Type.Object({
  version: Type.Literal(1),
  names: Type.Array(
    Type.Object({
      name: Type.String({ maxLength: 253 }),
      addresses: Type.Array(Type.String({ maxLength: 64 }), { maxItems: mostAddresses }),
    }),
    { maxItems: mostNames },
  ),
})
type Known = Static<typeof Stored>['names'][number]

export const addressesFile = (stateFolder: string): string => path.join(stateFolder, 'addresses.json')

export const openKnownAddresses = (stateFolder: string): KnownAddresses => {
  const file = addressesFile(stateFolder)
  let names: readonly Known[] = read(file)
  const lost = new Set<string>()
  return {
    lastGood: (name) => names.find((known) => known.name === name)?.addresses ?? [],
    worked: (name, address) => {
      const before = names.find((known) => known.name === name)
      if (before?.addresses[0] === address) return
      const others = (before?.addresses ?? []).filter((other) => other !== address)
      const known = { name, addresses: [address, ...others].slice(0, mostAddresses) }
      names = [known, ...names.filter((other) => other !== before)].slice(0, mostNames)
      write(stateFolder, names)
    },
    lost: (name) => {
      const isNew = !lost.has(name)
      lost.add(name)
      return isNew
    },
    found: (name) => lost.delete(name) && lost.size === 0,
  }
}

const read = (file: string): readonly Known[] => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(file) ?? 'null')
    if (!matchesSchema(Stored, value)) return []
    return value.names.map((known) => ({ ...known, addresses: known.addresses.filter(isIP) }))
  } catch {
    return []
  }
}

/** A disk that cannot be written is reported where credentials are written. */
const write = (stateFolder: string, names: readonly Known[]): void => {
  try {
    makeFolder(stateFolder, 0o700)
    replaceFile(addressesFile(stateFolder), JSON.stringify({ version: 1, names }, null, 1) + '\n', 0o600)
  } catch {
    return
  }
}
