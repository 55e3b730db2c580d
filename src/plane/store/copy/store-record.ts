// What a store holds, a record at a time, the same from whichever store it comes. A line of the export files of 0.2 was one
// record.

import { Type, type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import type { RowKind } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'

const strict = { additionalProperties: false }
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Name = Type.String({ minLength: 1, maxLength: 1000 })
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Signature = Type.String({ pattern: '^[A-Za-z0-9_-]{1,1000}$' })
const Document = Type.Object({}, { additionalProperties: true })

const rowKinds = Object.keys(tableShapes) as RowKind[]

const schemas = {
  /** The sealed bytes; they are bound to the name. */
  key: Type.Object(
    {
      key: Type.String({ pattern: '^[a-z-]{1,30}/[0-9a-z.]{1,200}$' }),
      sealed: Type.String({ minLength: 1, maxLength: 65_536 }),
    },
    strict,
  ),
  row: Type.Object(
    { row: Type.Enum(rowKinds), version: Type.Integer({ minimum: 1, maximum: 2 ** 52 }), value: Document },
    strict,
  ),
  /** A hardware address such as `mac:...`, and its node: a revoked node keeps what no other node has taken. */
  hardware: Type.Object({ hardware: Name, node: Name }, strict),
  observation: Type.Object(
    {
      observation: Name,
      last_seen_ms: orNull(Whole),
      agent_version: orNull(Type.String()),
      source: orNull(Type.String()),
      config_revision: orNull(Whole),
      report: orNull(Document),
      rehearsed_at_ms: orNull(Whole),
      evidence: orNull(Document),
      capabilities: orNull(Document),
      overlay: orNull(Document),
      /** Backups of 0.3 have none. */
      outputs: Type.Optional(orNull(Type.Array(Document))),
      /** Backups of 0.5 have none. */
      task_verifiers: Type.Optional(orNull(Whole)),
      /** Backups of 0.6 have none. */
      issuer_roots: Type.Optional(orNull(Whole)),
    },
    strict,
  ),
  webhook: Type.Object({ webhook: Document }, strict),
  /** Where a chain of the journal begins. Its entries follow, without a gap. */
  chain: Type.Object(
    { chain: Name, domain: Name, sequence: Whole, hash: Hash, signature: Signature, key_id: Name },
    strict,
  ),
  entry: Type.Object(
    { entry: Whole, bytes: Type.String(), hash: Hash, signature: orNull(Signature), key_id: orNull(Name) },
    strict,
  ),
}

type Schemas = typeof schemas
type RecordKind = keyof Schemas
export type RecordOf<K extends RecordKind> = Static<Schemas[K]>
export type StoreRecord = { [K in RecordKind]: { readonly kind: K } & { readonly record: RecordOf<K> } }[RecordKind]

const kinds = Object.keys(schemas) as RecordKind[]
const checks = Object.fromEntries(kinds.map((kind) => [kind, Compile(schemas[kind])]))

export const recordLine = ({ record }: StoreRecord): string => JSON.stringify(record)

/** Null: it is no record of this format. */
export const readRecord = (value: object): StoreRecord | null => {
  const kind = kinds.find((one) => Object.hasOwn(value, one))
  if (kind === undefined || checks[kind]?.Check(value) !== true) return null
  return { kind, record: value } as StoreRecord
}

/** What records are counted under. */
export type CountLabel = RowKind | Exclude<RecordKind, 'row'>
export type Counts = Readonly<Record<CountLabel, number>>

export const countLabels: readonly CountLabel[] = [
  ...rowKinds,
  ...kinds.filter((kind): kind is Exclude<RecordKind, 'row'> => kind !== 'row'),
]

export const labelOf = (record: StoreRecord): CountLabel => (record.kind === 'row' ? record.record.row : record.kind)

export const startCount = (): { add(record: StoreRecord): void; counts(): Counts } => {
  const counts = Object.fromEntries(countLabels.map((label) => [label, 0])) as Record<CountLabel, number>
  return { add: (record) => void counts[labelOf(record)]++, counts: () => ({ ...counts }) }
}

export const totalOf = (counts: Counts): number => countLabels.reduce((sum, label) => sum + counts[label], 0)

/** What differs, for people; null: nothing. */
export const countsDiffer = (expected: Counts, found: Counts): string | null => {
  const label = countLabels.find((one) => expected[one] !== found[one])
  return label === undefined ? null : `${found[label]} records of ${label} instead of ${expected[label]}`
}
