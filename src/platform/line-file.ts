// Long files of lines, written and read a piece at a time: they may be larger than memory.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder } from './files.ts'

export type NewLineFile = {
  /** One line; what ends it is added. */
  add(line: string): void
  /** Durable and whole under its name when it returns `created`. What is there already is never overwritten. */
  finish(): 'created' | 'exists'
  /** Leaves nothing behind. */
  abandon(): void
}

const pieceBytes = 1 << 20

/** Under its own name only once it is finished; read by nobody but its owner. */
export const newLineFile = (file: string): NewLineFile => {
  const beside = `${file}.${process.pid}.new`
  fs.rmSync(beside, { force: true })
  const fd = fs.openSync(beside, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600)
  let open = true
  let gathered: string[] = []
  let length = 0
  const flush = (): void => {
    fs.writeFileSync(fd, gathered.join(''))
    gathered = []
    length = 0
  }
  const close = (): void => {
    if (open) fs.closeSync(fd)
    open = false
  }
  const abandon = (): void => {
    close()
    fs.rmSync(beside, { force: true })
  }
  return {
    add(line) {
      gathered.push(line, '\n')
      length += line.length + 1
      if (length >= pieceBytes) flush()
    },
    finish() {
      try {
        flush()
        fs.fchmodSync(fd, 0o600)
        fs.fsyncSync(fd)
        close()
        giveName(beside, file)
      } catch (error) {
        if (errno(error) === 'EEXIST') return 'exists'
        throw error
      } finally {
        abandon()
      }
      flushFolder(path.dirname(file))
      return 'created'
    },
    abandon,
  }
}

const giveName = (beside: string, file: string): void => {
  try {
    // Unlike a rename, a link fails where the name is taken.
    fs.linkSync(beside, file)
  } catch (error) {
    // A memory stick knows no links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(errno(error) ?? '')) throw error
    fs.closeSync(fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600))
    fs.renameSync(beside, file)
  }
}

/** `ended`: false for a last line that nothing ends, as in a file that was cut off. */
export type FileLine = { readonly bytes: Uint8Array; readonly ended: boolean }

/** Without what ends them. A line that goes on far beyond `longest` bytes is given as so many of them, and not as ended. */
export function* linesOf(file: string, longest: number): Generator<FileLine, void, void> {
  const fd = fs.openSync(file, fs.constants.O_RDONLY)
  try {
    let rest: Buffer = Buffer.alloc(0)
    for (;;) {
      const piece = Buffer.alloc(pieceBytes)
      const read = fs.readSync(fd, piece, 0, pieceBytes, null)
      if (read === 0) break
      const bytes = rest.length === 0 ? piece.subarray(0, read) : Buffer.concat([rest, piece.subarray(0, read)])
      let start = 0
      for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
        yield { bytes: bytes.subarray(start, end), ended: true }
        start = end + 1
      }
      rest = bytes.subarray(start)
      if (rest.length > longest) break
    }
    if (rest.length > 0) yield { bytes: rest.subarray(0, longest), ended: false }
  } finally {
    fs.closeSync(fd)
  }
}

const newline = 0x0a
