// One plane a data folder, and the lock says which process has it.

import * as path from 'node:path'
import { pathExists } from '#platform/paths.ts'
import { errno, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { lockFolder, type FolderLock } from '#platform/sqlite-lock.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'

export const lockDataFolder = (folder: string): FolderLock => {
  const holder = path.join(folder, 'plane.pid')
  const lock = lockFolder(folder, 'plane.lock')
  if (lock === 'taken') throw inUse(folder, readFileIfAny(holder))
  if (lock === 'impossible') throw new Error(`nothing can be locked in ${folder}: is its disk full or read-only?`)
  nameHolder(holder)
  return {
    release() {
      try {
        removeFile(holder)
      } finally {
        lock.release()
      }
    },
  }
}

/** For people only: a plane starts on a full disk without it, and then a file that names another process must not stay. */
const nameHolder = (file: string): void => {
  try {
    replaceFile(file, `${process.pid}\n`, 0o644)
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errno(error) ?? '')) throw error
    removeFile(file)
  }
}

/** Looks without leaving a file where there was none. */
export const refuseLocked = (folder: string): void => {
  if (!pathExists(path.join(folder, 'plane.lock'))) return
  const lock = lockFolder(folder, 'plane.lock')
  if (lock === 'taken') throw inUse(folder, readFileIfAny(path.join(folder, 'plane.pid')))
  if (typeof lock === 'object') lock.release()
}

export const inUse = (folder: string, holder: string | null): StoreRefused => {
  const who = holder !== null && /^\d+\n$/.test(holder) ? ` (process ${holder.trim()})` : ''
  return new StoreRefused(
    'DATA_FOLDER_IN_USE',
    `another plane${who} runs on the data folder ${folder}`,
    'Stop that plane first, or give this one a folder of its own',
  )
}
