// The files of a folder by their age, without the folders in it and without links.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder } from './files.ts'

export type AgedFile = { readonly name: string; readonly bytes: number; readonly modifiedMs: number }

/** The newest first. */
export const filesByAge = (folder: string): readonly AgedFile[] =>
  fs
    .readdirSync(folder)
    .flatMap((name) => {
      const stats = fs.lstatSync(path.join(folder, name), { throwIfNoEntry: false })
      return stats?.isFile() === true ? [{ name, bytes: stats.size, modifiedMs: stats.mtimeMs }] : []
    })
    .sort((a, b) => b.modifiedMs - a.modifiedMs || (a.name < b.name ? -1 : 1))

export type RemovedFiles = {
  /** How many of them were there. */
  readonly removed: number
  readonly stayed: readonly { readonly name: string; readonly code: string }[]
}

/** Goes on after one that cannot be removed, such as an immutable file. Flushed once, at the end. */
export const removeFiles = (folder: string, names: readonly string[]): RemovedFiles => {
  let removed = 0
  const stayed: { name: string; code: string }[] = []
  for (const name of names) {
    try {
      fs.unlinkSync(path.join(folder, name))
      removed += 1
    } catch (error) {
      const code = errno(error)
      if (code === null) throw error
      if (code !== 'ENOENT') stayed.push({ name, code })
    }
  }
  flushFolder(folder)
  return { removed, stayed }
}
