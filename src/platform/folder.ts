// Listing a folder, and creating files that must not exist yet.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, replaceFile, type Mode } from './files.ts'

/** The names in a folder, sorted; none when there is no such folder. */
export const namesIn = (folder: string): readonly string[] => {
  try {
    return fs.readdirSync(folder).sort()
  } catch (error) {
    if (errno(error) === 'ENOENT') return []
    throw error
  }
}

/**
 * Durable and whole when it returns `created`. What is there already is never overwritten: of two processes at once one
 * creates the file, and the other finds it.
 */
export const createFile = (file: string, content: string, mode: Mode): 'created' | 'exists' => {
  const beside = `${file}.${process.pid}.new`
  replaceFile(beside, content, mode)
  try {
    // Unlike a rename, a link fails where the name is taken.
    fs.linkSync(beside, file)
  } catch (error) {
    if (errno(error) === 'EEXIST') return 'exists'
    throw error
  } finally {
    fs.rmSync(beside, { force: true })
  }
  flushFolder(path.dirname(file))
  return 'created'
}
