// A tar archive (POSIX.1-1988, ustar) from entries in memory: owners need no root, and the same entries make the same bytes everywhere.

export type TarEntry = {
  /** Without a leading or trailing slash. */
  readonly name: string
  readonly mode: number
  readonly owner?: number
} & (
  | { readonly kind: 'file'; readonly content: Buffer }
  | { readonly kind: 'folder' }
  | { readonly kind: 'link'; readonly to: string }
)

const block = 512

/** `epoch`: of every entry, in seconds. In the order given: folders before what is in them. */
export const tarArchive = (entries: readonly TarEntry[], epoch: number): Buffer =>
  Buffer.concat([
    ...entries.flatMap((entry) =>
      entry.kind === 'file' ? [header(entry, epoch), padded(entry.content)] : [header(entry, epoch)],
    ),
    Buffer.alloc(2 * block),
  ])

const padded = (content: Buffer): Buffer =>
  Buffer.concat([content, Buffer.alloc((block - (content.length % block)) % block)])

const typeFlags = { file: '0', link: '2', folder: '5' } as const

const header = (entry: TarEntry, epoch: number): Buffer => {
  const { prefix, name } = splitName(entry.kind === 'folder' ? `${entry.name}/` : entry.name)
  const bytes = Buffer.alloc(block)
  const text = (value: string, at: number, length: number): void => {
    if (Buffer.byteLength(value) > length) throw new Error(`too long for a tar archive: ${value}`)
    bytes.write(value, at, 'utf8')
  }
  const octal = (value: number, at: number, length: number): void =>
    text(`${value.toString(8).padStart(length - 1, '0')}\0`, at, length)
  text(name, 0, 100)
  octal(entry.mode, 100, 8)
  octal(entry.owner ?? 0, 108, 8)
  octal(entry.owner ?? 0, 116, 8)
  octal(entry.kind === 'file' ? entry.content.length : 0, 124, 12)
  octal(epoch, 136, 12)
  text(' '.repeat(8), 148, 8)
  text(typeFlags[entry.kind], 156, 1)
  if (entry.kind === 'link') text(entry.to, 157, 100)
  text('ustar\x0000', 257, 8)
  text(prefix, 345, 155)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  text(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8)
  return bytes
}

/** The name has room for 100 bytes, the folders before it for 155 more. */
const splitName = (full: string): { readonly prefix: string; readonly name: string } => {
  if (Buffer.byteLength(full) <= 100) return { prefix: '', name: full }
  const at = full.indexOf('/', Math.max(0, full.length - 101))
  return { prefix: full.slice(0, at), name: full.slice(at + 1) }
}
