// A folder or a file that only one process uses at a time, without SQLite, which an agent does not load. Node cannot lock a file itself.
// A lock of flock(2) belongs to the open file, which the program `flock` shares with this process: it stays when the program has ended.

import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { errno, makeFolder } from './files.ts'

export type FileLock = { release(): void }

/**
 * Makes the folder if need be. `taken`: another holder has it. `impossible`: nothing can be locked there, on a disk that is full or
 * read-only. `no-program`: this host has no `flock`. The kernel drops the lock with the process, however that ends; programs that this
 * process starts do not inherit it.
 */
export const flockFolder = (folder: string, name: string): FileLock | 'taken' | 'impossible' | 'no-program' => {
  let file: number
  try {
    makeFolder(folder, 0o700)
    file = fs.openSync(`${folder}/${name}`, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
  } catch {
    return 'impossible'
  }
  const locked = flockFile(file)
  if (locked === 'locked') return { release: () => fs.closeSync(file) }
  fs.closeSync(file)
  return locked
}

/** Of an open file; closing it drops the lock. */
export const flockFile = (file: number): 'locked' | 'taken' | 'impossible' | 'no-program' => {
  const { status, error } = spawnSync('flock', ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'ignore', file] })
  if (status === 0) return 'locked'
  if (error !== undefined) return errno(error) === 'ENOENT' ? 'no-program' : 'impossible'
  return status === heldByAnother ? 'taken' : 'impossible'
}

const heldByAnother = 1
