// The file a domain is moved in: a header, one record a line, and an end that says how much there was and is signed with
// the key of journal heads, so that what was cut off or altered on the way is found out.

import { createHash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { linesOf, type NewLineFile } from '#platform/line-file.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { TransferRefused } from './transfer-errors.ts'
import { countLabels, countsDiffer, readRecord, recordLine, startCount } from './transfer-record.ts'
import type { Counts, TransferRecord } from './transfer-record.ts'

/** Raised when a line changes its shape. What documents look like is told by the schema beside it. */
const format = 2
const whatItIs = 'store export'
/** The longest line there can be is a node's report, which the listener bounds far below this. */
const longestLine = 8 << 20

const strict = { additionalProperties: false }
const CountsSchema = Type.Object(
  Object.fromEntries(countLabels.map((label) => [label, Type.Integer({ minimum: 0 })])),
  strict,
)
const Header = Type.Object(
  {
    muster: Type.Literal(whatItIs),
    format: Type.Literal(format),
    domain: Type.String({ minLength: 1, maxLength: 253 }),
    store: Type.Enum(['sqlite', 'postgres']),
    schema: Type.Integer({ minimum: 1 }),
    release: Type.String(),
    made_at: Type.String(),
    counts: CountsSchema,
  },
  strict,
)
const End = Type.Object(
  {
    end: Type.Object(
      {
        lines: Type.Integer({ minimum: 1 }),
        counts: CountsSchema,
        sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
        key_id: Type.String(),
        signature: Type.String({ pattern: '^[A-Za-z0-9_-]{1,1000}$' }),
      },
      strict,
    ),
  },
  strict,
)
type RawHeader = Static<typeof Header>
export type ExportHeader = Omit<RawHeader, 'muster' | 'format' | 'counts'> & { readonly counts: Counts }
export type ExportEnd = { readonly sha256: string; readonly keyId: string; readonly signature: Uint8Array }

const headerCheck = Compile(Header)
const endCheck = Compile(End)

const signedEnd = (sha256: string, keyId: string): Uint8Array =>
  Buffer.from(canonicalJson({ keyId, purpose: 'muster store export', sha256 }), 'utf8')

export const endIsSigned = (end: ExportEnd, signer: HeadSigner): boolean =>
  end.keyId === signer.keyId && signer.verify(signedEnd(end.sha256, end.keyId), end.signature)

/** Every record in the order it comes, then the end. Returns the hash of all of it. */
export const writeExport = async (
  file: Pick<NewLineFile, 'add'>,
  header: ExportHeader,
  records: AsyncIterable<TransferRecord>,
  signer: HeadSigner,
): Promise<string> => {
  const hash = createHash('sha256')
  const count = startCount()
  let lines = 0
  const add = (line: string): void => {
    hash.update(line).update('\n')
    file.add(line)
    lines++
  }
  add(JSON.stringify({ muster: whatItIs, format, ...header }))
  for await (const record of records) {
    count.add(record)
    add(recordLine(record))
  }
  const counts = count.counts()
  const differs = countsDiffer(header.counts, counts)
  if (differs !== null) throw new Error(`the store changed while it was exported: ${differs}`)
  const sha256 = hash.digest('hex')
  const signature = Buffer.from(signer.sign(signedEnd(sha256, signer.keyId))).toString('base64url')
  file.add(JSON.stringify({ end: { lines, counts, sha256, key_id: signer.keyId, signature } }))
  return sha256
}

export type ExportPart =
  | { readonly kind: 'header'; readonly header: ExportHeader }
  | TransferRecord
  /** The last: until it has come, nothing before it is known to be whole. */
  | { readonly kind: 'end'; readonly end: ExportEnd }

/** Throws TransferRefused where it is not what `writeExport` wrote. Whether the end is signed is the caller's to ask. */
export function* readExport(file: string): Generator<ExportPart, void, void> {
  const hash = createHash('sha256')
  const count = startCount()
  let header: ExportHeader | null = null
  let lines = 0
  let ended = false
  for (const line of linesOf(file, longestLine)) {
    if (ended) throw damaged('something follows its end')
    const value = line.ended ? parsed(line.bytes) : null
    if (header === null) {
      header = readHeader(value)
      yield { kind: 'header', header }
    } else if (value === null) {
      throw damaged(line.ended ? `line ${lines + 1} is not readable` : `it was cut off in line ${lines + 1}`)
    } else if (Object.hasOwn(value, 'end')) {
      if (!endCheck.Check(value)) throw damaged('its end is not readable')
      const { end } = value
      const counts = count.counts()
      const differs = countsDiffer(end.counts as Counts, counts) ?? countsDiffer(header.counts, counts)
      if (differs !== null) throw damaged(`it has ${differs}`)
      if (end.lines !== lines || end.sha256 !== hash.digest('hex')) throw damaged('it does not match its own hash')
      ended = true
      yield {
        kind: 'end',
        end: { sha256: end.sha256, keyId: end.key_id, signature: Buffer.from(end.signature, 'base64url') },
      }
      continue
    } else {
      const record = readRecord(value)
      if (record === null) throw damaged(`line ${lines + 1} is no record of this format`)
      count.add(record)
      yield record
    }
    hash.update(line.bytes).update('\n')
    lines++
  }
  if (header === null) throw unknown('it is empty')
  if (!ended) throw damaged('its end is missing')
}

const readHeader = (value: object | null): ExportHeader => {
  if (value === null || !('muster' in value) || value.muster !== whatItIs) throw unknown('it does not begin like one')
  if ('format' in value && value.format !== format)
    throw unknown(`it has format ${String(value.format)}, and this release of Muster reads format ${format}`)
  if (!headerCheck.Check(value)) throw damaged('its first line is not readable')
  const { muster: _what, format: _format, ...header } = value
  return header as ExportHeader
}

const parsed = (bytes: Uint8Array): object | null => {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

const unknown = (why: string): TransferRefused =>
  new TransferRefused(
    'EXPORT_UNKNOWN',
    `the file is not an export of a store: ${why}`,
    'Give a file that this made, with the same release: muster store export FILE',
  )

export const damaged = (why: string): TransferRefused =>
  new TransferRefused(
    'EXPORT_DAMAGED',
    `the export is damaged: ${why}`,
    'Copy it again, or make a new one where it came from: muster store export FILE',
  )
