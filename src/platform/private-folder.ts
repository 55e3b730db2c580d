// A folder that only one user changes.

import * as fs from 'node:fs'
import { errno } from './files.ts'

/** Null if only this user and root can change the folder's content, or the folder does not exist; else what is wrong with it. */
export const faultOfPrivateFolder = (folder: string): string | null => {
  const stats = statIfAny(folder)
  if (stats === null) return null
  if (!stats.isDirectory()) return 'is not a folder'
  if (stats.uid !== process.getuid?.() && stats.uid !== 0) return 'belongs to another user'
  if ((stats.mode & 0o022) !== 0) return 'can be written by other users'
  return mayUse(folder) ? null : 'may not be used by this user'
}

/** The number of the user whose folder it is; null: there is none. */
export const ownerOfFolder = (folder: string): number | null => statIfAny(folder)?.uid ?? null

/** A read-only disk may be: it heals, and a key kept in memory needs none. */
const mayUse = (folder: string): boolean => {
  try {
    fs.accessSync(folder, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
    return true
  } catch (error) {
    return errno(error) !== 'EACCES'
  }
}

const statIfAny = (folder: string): fs.Stats | null => {
  try {
    return fs.statSync(folder)
  } catch {
    // An error that prevents looking prevents writing too, and is reported there.
    return null
  }
}
