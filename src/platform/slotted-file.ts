// A small text that is rewritten often, must survive a crash, and must still be writable on a full disk: a file of fixed
// size with two slots, written in turns. Its space is taken once; a write that is cut short spoils only its own slot.

import * as fs from 'node:fs'
import { crc32 } from 'node:zlib'
import { allocatedBytes, allocateFile } from './disk-space.ts'
import { errno } from './files.ts'

export type SlottedFile = {
  /** Durable when it returns. Throws for a text that is too long, and what the disk throws. */
  write(text: string): void
  /** How many bytes of UTF-8 a slot takes. */
  readonly longest: number
}

const headerBytes = 64
const mark = 'muster-slot'

type Slot = { readonly number: number; readonly text: string }

export const openSlottedFile = (file: string, slotBytes: number): SlottedFile => {
  const longest = slotBytes - headerBytes
  let latest = readSlots(file, slotBytes).at(-1)?.number ?? 0
  const allocate = (): void => {
    if (allocatedBytes(file) >= 2 * slotBytes) return
    const kept = readSlots(file, slotBytes).at(-1)
    const content = Buffer.alloc(2 * slotBytes, ' ')
    if (kept !== undefined) slotOf(kept, slotBytes).copy(content, (kept.number % 2) * slotBytes)
    allocateFile(file, content)
  }
  return {
    longest,
    write: (text) => {
      if (Buffer.byteLength(text) > longest) throw new RangeError(`longer than a slot of ${longest} bytes`)
      allocate()
      const slot = { number: latest + 1, text }
      const fd = fs.openSync(file, 'r+')
      try {
        fs.writeSync(fd, slotOf(slot, slotBytes), 0, slotBytes, (slot.number % 2) * slotBytes)
        fs.fdatasyncSync(fd)
      } finally {
        fs.closeSync(fd)
      }
      latest = slot.number
    },
  }
}

/** What was written last and is whole; null when there is nothing. Throws when it may not be read. */
export const readSlottedFile = (file: string, slotBytes: number): string | null =>
  readSlots(file, slotBytes).at(-1)?.text ?? null

const slotOf = ({ number, text }: Slot, slotBytes: number): Buffer => {
  const body = Buffer.from(text)
  const slot = Buffer.alloc(slotBytes, ' ')
  slot.write(`${mark} ${number} ${body.length} ${crc32(body).toString(16)}\n`)
  body.copy(slot, headerBytes)
  return slot
}

/** Whole ones, the newest last. */
const readSlots = (file: string, slotBytes: number): Slot[] => {
  const content = contentOf(file, 2 * slotBytes)
  return [content.subarray(0, slotBytes), content.subarray(slotBytes)]
    .flatMap((bytes) => parseSlot(bytes) ?? [])
    .sort((a, b) => a.number - b.number)
}

const contentOf = (file: string, bytes: number): Buffer => {
  try {
    return fs.readFileSync(file).subarray(0, bytes)
  } catch (error) {
    if (errno(error) === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

const parseSlot = (bytes: Buffer): Slot | null => {
  const header = new RegExp(`^${mark} (\\d{1,15}) (\\d{1,9}) ([0-9a-f]{1,8})\\n`).exec(
    bytes.toString('latin1', 0, headerBytes),
  )
  if (header === null) return null
  const body = bytes.subarray(headerBytes, headerBytes + Number(header[2]))
  if (body.length !== Number(header[2]) || crc32(body).toString(16) !== header[3]) return null
  return { number: Number(header[1]), text: body.toString('utf8') }
}
