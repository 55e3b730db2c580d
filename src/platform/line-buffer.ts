// Bytes as they arrive, taken out line by line. What that costs grows with the bytes and not with how they are divided: a peer that
// sends nothing but newlines, or one byte at a time, does not cause what waits behind it to be copied.

export type LineBuffer = {
  add(bytes: Uint8Array): void
  /** Of what was not taken out yet. */
  length(): number
  /** Whether a whole line is there. */
  hasLine(): boolean
  /** The next line without its newline; null: none is whole. It is good until bytes are added. */
  take(): Buffer | null
  clear(): void
}

const newline = 0x0a
const smallest = 64 * 1024
const nothing = Buffer.alloc(0)

export const openLineBuffer = (): LineBuffer => {
  let held = nothing
  /** What is held lies between them. */
  let [start, end] = [0, 0]
  /** There is no newline before it. */
  let searched = 0

  const findEnd = (): number => {
    const at = held.subarray(searched, end).indexOf(newline)
    searched = at === -1 ? end : searched + at
    return at === -1 ? -1 : searched
  }
  /** Twice as much as is needed: copying is paid for by the bytes that come before the next time. */
  const makeRoom = (more: number): void => {
    const length = end - start
    if (end + more <= held.length) return
    const larger =
      2 * (length + more) <= held.length ? held : Buffer.allocUnsafeSlow(Math.max(smallest, 2 * (length + more)))
    held.copy(larger, 0, start, end)
    held = larger
    ;[start, end, searched] = [0, length, searched - start]
  }
  const clear = (): void => {
    held = nothing
    ;[start, end, searched] = [0, 0, 0]
  }
  return {
    add: (bytes) => {
      makeRoom(bytes.length)
      held.set(bytes, end)
      end += bytes.length
    },
    length: () => end - start,
    hasLine: () => findEnd() !== -1,
    take: () => {
      const at = findEnd()
      if (at === -1) return null
      const line = held.subarray(start, at)
      ;[start, searched] = [at + 1, at + 1]
      // A long request is not kept for as long as the connection lasts.
      if (start === end) clear()
      return line
    },
    clear,
  }
}
