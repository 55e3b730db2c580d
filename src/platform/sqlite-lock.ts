// A folder that only one process uses at a time, by a lock of SQLite.

import { makeFolder } from './files.ts'
import { openDatabase, sqliteTrouble } from './sqlite.ts'

export type FolderLock = { release(): void }

/**
 * Makes the folder if need be. `taken`: another holder has it. `impossible`: nothing can be locked there, on a disk that
 * is full or read-only. The lock is on an empty file: the kernel drops it with the process, however that ends.
 */
export const lockFolder = (folder: string, name: string): FolderLock | 'taken' | 'impossible' => {
  try {
    makeFolder(folder, 0o700)
    const lock = openDatabase(`${folder}/${name}`, 0)
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      lock.close()
      throw error
    }
    return { release: () => lock.close() }
  } catch (error) {
    return sqliteTrouble(error) === 'busy' ? 'taken' : 'impossible'
  }
}
