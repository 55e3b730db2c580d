// An ELF file without what only a debugger reads: a fifth of Node's own binary. `strip` of binutils does the same, but only for the
// architecture of the machine it runs on, and its bytes depend on its release.

const allocated = 0x2n
const loadSegment = 1

type Section = { readonly name: string; readonly header: Buffer }

/** Keeps what is loaded, and the table that describes it: packaging tools read that. */
export const stripElf = (file: Buffer): Buffer => {
  if (file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1) {
    throw new Error('not a 64-bit little-endian ELF file')
  }
  const sections = sectionsOf(file)
  const kept = sections.filter(({ header }, at) => at === 0 || (header.readBigUInt64LE(8) & allocated) !== 0n)
  // Sections name each other by number.
  if (kept.some((section, at) => section !== sections[at])) throw new Error('a loaded section follows one that is not')
  const names = nameTable(kept.map(({ name }) => name))
  const loadedEnd = endOfLoaded(file)
  const namesAt = loadedEnd
  const tableAt = Math.ceil((namesAt + names.text.length) / 8) * 8
  const stripped = Buffer.alloc(tableAt + (kept.length + 1) * 64)
  file.copy(stripped, 0, 0, loadedEnd)
  names.text.copy(stripped, namesAt)
  kept.forEach(({ header }, at) => {
    header.copy(stripped, tableAt + at * 64)
    stripped.writeUInt32LE(names.offsets[at] ?? 0, tableAt + at * 64)
  })
  const last = tableAt + kept.length * 64
  stripped.writeUInt32LE(names.offsets[kept.length] ?? 0, last)
  stripped.writeUInt32LE(stringTable, last + 4)
  stripped.writeBigUInt64LE(BigInt(namesAt), last + 24)
  stripped.writeBigUInt64LE(BigInt(names.text.length), last + 32)
  stripped.writeBigUInt64LE(1n, last + 48)
  stripped.writeBigUInt64LE(BigInt(tableAt), 40)
  stripped.writeUInt16LE(kept.length + 1, 60)
  stripped.writeUInt16LE(kept.length, 62)
  return stripped
}

const stringTable = 3

const sectionsOf = (file: Buffer): Section[] => {
  const at = Number(file.readBigUInt64LE(40))
  const headers = Array.from({ length: file.readUInt16LE(60) }, (_, index) =>
    file.subarray(at + index * 64, at + (index + 1) * 64),
  )
  const names = headers[file.readUInt16LE(62)]
  if (names === undefined) throw new Error('the sections have no names')
  const namesAt = Number(names.readBigUInt64LE(24))
  return headers.map((header) => {
    const start = namesAt + header.readUInt32LE(0)
    return { header, name: file.toString('latin1', start, file.indexOf(0, start)) }
  })
}

/** The end of the last byte that the kernel or the dynamic loader maps. */
const endOfLoaded = (file: Buffer): number => {
  const at = Number(file.readBigUInt64LE(32))
  let end = 0
  for (let index = 0; index < file.readUInt16LE(56); index += 1) {
    const header = at + index * 56
    if (file.readUInt32LE(header) !== loadSegment) continue
    end = Math.max(end, Number(file.readBigUInt64LE(header + 8) + file.readBigUInt64LE(header + 32)))
  }
  return end
}

/** The last name is that of the table itself. */
const nameTable = (kept: readonly string[]): { readonly text: Buffer; readonly offsets: readonly number[] } => {
  const offsets: number[] = []
  let text = ''
  for (const name of [...kept, '.shstrtab']) {
    offsets.push(text.length)
    text += `${name}\0`
  }
  return { text: Buffer.from(text, 'latin1'), offsets }
}
