// Long files of lines, read a piece at a time: they may be larger than memory.

import * as fs from 'node:fs'

const pieceBytes = 1 << 20

/** `ended`: false for a last line that nothing ends, as in a file that was cut off. */
export type FileLine = { readonly bytes: Uint8Array; readonly ended: boolean }

/** Lines without their ends. A line far beyond `longest` bytes is cut to that length and marked as not ended. */
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
