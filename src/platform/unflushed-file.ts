// A file that readers see whole, and that may be lost in a power cut: for what is rewritten often and worth little.

import * as fs from 'node:fs'
import { errno, type Mode } from './files.ts'

/**
 * Padded with spaces to `size` bytes, so that on a full disk it can still be written over in place: then a reader may, for
 * a moment, see it torn.
 */
export const replaceUnflushed = (file: string, content: string, mode: Mode, size: number): void => {
  const padded = Buffer.alloc(Math.max(size, Buffer.byteLength(content)), ' ')
  padded.write(content)
  padded.write('\n', padded.length - 1)
  const beside = `${file}.new`
  try {
    fs.writeFileSync(beside, padded, { mode })
    fs.renameSync(beside, file)
  } catch (error) {
    fs.rmSync(beside, { force: true })
    if (errno(error) !== 'ENOSPC' && errno(error) !== 'EDQUOT') throw error
    overwrite(file, padded)
  }
}

const overwrite = (file: string, content: Uint8Array): void => {
  const fd = fs.openSync(file, 'r+')
  try {
    fs.writeSync(fd, content, 0, content.length, 0)
    fs.ftruncateSync(fd, content.length)
  } finally {
    fs.closeSync(fd)
  }
}
