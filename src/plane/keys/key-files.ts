// The sealed keys of a plane on SQLite lie in files, one each. Elsewhere they go by the name they are sealed under.

import * as path from 'node:path'
import { makeFolder, readFileIfAny } from '#platform/files.ts'
import { createFile, namesIn } from '#platform/folder.ts'

const shape = /^([a-z-]+)\.([0-9a-f]+(?:\.[0-9a-f]+)?)\.key$/
const headFile = 'journal.key'

/** The key that signs heads of the journal. */
export const headKeyName = 'journal/head'

/** Made by every plane for itself when it starts without: what it presents belongs to no other. What was set aside stays. */
const notMoved = /^((recovery-)?server|set-aside)\//

export const isMoved = (name: string): boolean => !notMoved.test(name)

const nameOf = (file: string): string | null => {
  if (file === headFile) return headKeyName
  const [, role, id] = shape.exec(file) ?? []
  return role === undefined || id === undefined ? null : `${role}/${id}`
}

const fileOf = (name: string): string => (name === headKeyName ? headFile : `${name.replace('/', '.')}.key`)

/** All of them, as they are sealed. */
export const keysInFolder = (dataFolder: string): ReadonlyMap<string, string> => {
  const folder = path.join(dataFolder, 'keys')
  const found = new Map<string, string>()
  for (const file of namesIn(folder)) {
    const name = nameOf(file)
    const sealed = name === null ? null : readFileIfAny(path.join(folder, file))
    if (name !== null && sealed !== null) found.set(name, sealed)
  }
  return found
}

/** Durable when it returns. An existing key stays: the caller has made sure that it is the same. */
export const writeKeyFiles = (dataFolder: string, keys: ReadonlyMap<string, string>): void => {
  const folder = path.join(dataFolder, 'keys')
  makeFolder(folder, 0o700)
  for (const [name, sealed] of keys) createFile(path.join(folder, fileOf(name)), sealed, 0o600)
}
