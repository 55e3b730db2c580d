// One plane a data folder. The lock is SQLite's own write lock on an otherwise empty file: the kernel drops it with the
// process, however that ends, so there is never a stale one to clean up.

import * as path from 'node:path'
import { readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { openDatabase, sqliteTrouble } from '#platform/sqlite.ts'
import { StoreRefused } from './store-errors.ts'

export type DataFolderLock = { release(): void }

export const lockDataFolder = (folder: string): DataFolderLock => {
  const holder = path.join(folder, 'plane.pid')
  const lock = openDatabase(path.join(folder, 'plane.lock'), 0)
  try {
    lock.exec('BEGIN IMMEDIATE')
  } catch (error) {
    lock.close()
    if (sqliteTrouble(error) === 'busy') throw inUse(folder, readFileIfAny(holder))
    throw error
  }
  replaceFile(holder, `${process.pid}\n`, 0o644)
  return {
    release() {
      try {
        removeFile(holder)
      } finally {
        lock.close()
      }
    },
  }
}

const inUse = (folder: string, holder: string | null): StoreRefused => {
  const who = holder !== null && /^\d+\n$/.test(holder) ? ` (process ${holder.trim()})` : ''
  return new StoreRefused(
    'DATA_FOLDER_IN_USE',
    `another plane${who} runs on the data folder ${folder}`,
    'Stop that plane first, or give this one a folder of its own',
  )
}
