// What lies in a folder, and files that must not be there yet.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, type Mode } from './files.ts'

/** The names in a folder, sorted; none when there is no such folder. */
export const namesIn = (folder: string): readonly string[] => {
  try {
    return fs.readdirSync(folder).sort()
  } catch (error) {
    if (errno(error) === 'ENOENT') return []
    throw error
  }
}

/** Durable when it returns `created`. What is there already is never overwritten. */
export const createFile = (file: string, content: string, mode: Mode): 'created' | 'exists' => {
  let fd: number
  try {
    fd = fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, mode)
  } catch (error) {
    if (errno(error) === 'EEXIST') return 'exists'
    throw error
  }
  try {
    fs.fchmodSync(fd, mode)
    fs.writeFileSync(fd, content)
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
  flushFolder(path.dirname(file))
  return 'created'
}
