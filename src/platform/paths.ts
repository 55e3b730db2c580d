// What a path leads to, and folders that come and go whole.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { errno } from './files.ts'

export const pathExists = (place: string): boolean => fs.existsSync(place)

/** Also through a link. */
export const isFolder = (place: string): boolean =>
  fs.statSync(place, { throwIfNoEntry: false })?.isDirectory() === true

/** A file itself, neither a link to one nor something like /dev/stdin. */
export const isOrdinaryFile = (place: string): boolean =>
  fs.lstatSync(place, { throwIfNoEntry: false })?.isFile() === true

/** What it gives it gives once: a pipe, a terminal. */
export const isStream = (place: string): boolean => {
  try {
    const stats = fs.statSync(place)
    return stats.isFIFO() || stats.isSocket() || stats.isCharacterDevice()
  } catch {
    return false
  }
}

/** A new folder of this user alone (0700). */
export const makeTemporaryFolder = (prefix: string): string => fs.mkdtempSync(path.join(os.tmpdir(), prefix))

export const removeFolder = (folder: string): void => fs.rmSync(folder, { recursive: true, force: true })

/** Takes the place of a file of that name, or of an empty folder. */
export const renamePath = (from: string, to: string): void => fs.renameSync(from, to)

/** Of the file system that the place is on, or would be on. A folder bound from the same file system counts as part of it. */
export const mountPointOf = (place: string): string => {
  const stats = fs.statSync(place, { throwIfNoEntry: false })
  const above = path.dirname(place)
  if (above === place) return place
  const deviceAbove = fs.statSync(above, { throwIfNoEntry: false })?.dev
  return stats === undefined || stats.dev === deviceAbove ? mountPointOf(above) : place
}

/** Why this user could neither write in the folder nor make it; null: it could. */
export const folderFault = (folder: string): string | null => {
  const stats = fs.statSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) {
    const above = path.dirname(folder)
    const fault = above === folder ? `${folder} does not exist` : folderFault(above)
    return fault === null ? null : `${folder} cannot be made: ${fault}`
  }
  if (!stats.isDirectory()) return `${folder} is not a folder`
  try {
    fs.accessSync(folder, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
    return null
  } catch {
    return `${folder} cannot be written by this user`
  }
}

/** Why this user cannot read the file; null: it can. */
export const fileFault = (file: string): string | null => {
  try {
    fs.accessSync(file, fs.constants.R_OK)
    return fs.statSync(file).isDirectory() ? `${file} is a folder` : null
  } catch (error) {
    return errno(error) === 'ENOENT' ? `there is no file ${file}` : `${file} cannot be read by this user`
  }
}
