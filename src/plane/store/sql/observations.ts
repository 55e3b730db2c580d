// What is seen of nodes: gathered in memory and written now and then, beside the commits and never with them. It is
// lossy by contract; a crash or a full disk costs a few seconds of it and nothing else.

import type { NodeId } from '#domain/core/node.ts'
import { turn } from '#platform/timers.ts'
import { nothingObserved, type Observation, type StoreCore } from '#plane/store/contract/store.ts'
import type { Dialect, Insertion, Sql, SqlColumn, SqlRow, SqlStatement } from './sql.ts'

export type Observations = {
  observe(node: NodeId, seen: Partial<Observation>): void
  of(node: NodeId): Promise<Observation>
  rehearsedAtMs(node: NodeId): Promise<number | null>
  /** Writes what is gathered. Resolves when that was tried. */
  flush(): Promise<void>
}

type Gathered = readonly [node: NodeId, seen: Partial<Observation>]

const mostGathered = 100_000
const slice = 500

/** `has`: false on the schema of a release before, where what is seen of such a field is dropped. */
export const openObservations = (
  { timers, log }: Pick<StoreCore, 'timers' | 'log'>,
  sql: Sql,
  has: (column: YoungColumn) => boolean = () => true,
): Observations => {
  const gathered = new Map<NodeId, Partial<Observation>>()
  const from = { table: 'observation', key: 'node' }
  const stored = new Map<string, ReturnType<Sql['byKey']>>()
  const missing = (): readonly string[] => youngColumns.filter((column) => !has(column))
  const read = (node: NodeId): Promise<SqlRow | null> => {
    const without = missing()
    const name = ['observation', ...without].join('-without-')
    const known = stored.get(name)
    const found = known ?? sql.byKey({ name, ...from, columns: selected.filter((column) => !without.includes(column)) })
    if (known === undefined) stored.set(name, found)
    return found(node)
  }
  let flushing: Promise<void> | null = null

  const writeSlice = async (written: readonly Gathered[]): Promise<void> => {
    await sql.insert(byFields(written, missing()).map(([fields, rows]) => upsertOf(sql.dialect, fields, rows)))
    // Unless more was seen meanwhile: that goes with the next.
    for (const [node, seen] of written) if (gathered.get(node) === seen) gathered.delete(node)
  }

  const flush = async (): Promise<void> => {
    // In one order everywhere: replicas that write about the same nodes wait for each other and never in a circle.
    const all = [...gathered].sort(([one], [other]) => (one < other ? -1 : 1))
    try {
      for (let start = 0; start < all.length; start += slice) {
        if (start > 0) await turn(timers)
        await writeSlice(all.slice(start, start + slice))
      }
    } catch (error) {
      log.warn({ err: error }, 'observations could not be written; they are tried again')
    }
  }

  return {
    observe(node, seen) {
      if (gathered.size >= mostGathered && !gathered.has(node)) return
      gathered.set(node, { ...gathered.get(node), ...seen })
    },
    async of(node) {
      const row = await read(node)
      return { ...(row === null ? nothingObserved : decode(row)), ...gathered.get(node) }
    },
    async rehearsedAtMs(node) {
      const known = gathered.get(node)?.rehearsedAtMs
      if (known !== undefined) return known
      const [row] = await sql.read(selectRehearsed, [node])
      return (row?.['rehearsed_at_ms'] ?? null) as number | null
    },
    flush: () =>
      (flushing ??= flush().finally(() => {
        flushing = null
      })),
  }
}

type Field = keyof Observation

const columnOf: Readonly<Record<Field, SqlColumn>> = {
  lastSeenMs: { name: 'last_seen_ms', type: 'bigint' },
  agentVersion: { name: 'agent_version', type: 'text' },
  source: { name: 'source', type: 'text' },
  configRevision: { name: 'config_revision', type: 'bigint' },
  report: { name: 'report', type: 'text' },
  rehearsedAtMs: { name: 'rehearsed_at_ms', type: 'bigint' },
  evidence: { name: 'evidence', type: 'text' },
  capabilities: { name: 'capabilities', type: 'text' },
  overlay: { name: 'overlay', type: 'text' },
  outputs: { name: 'outputs', type: 'text' },
  taskVerifiers: { name: 'task_verifiers', type: 'bigint' },
  issuerRoots: { name: 'issuer_roots', type: 'bigint' },
}
/** Columns that the schema of a release before does not have. */
const youngColumns = ['outputs', 'task_verifiers', 'issuer_roots'] as const
type YoungColumn = (typeof youngColumns)[number]
const everyField = Object.keys(columnOf) as readonly Field[]
const documents: ReadonlySet<Field> = new Set<Field>(['report', 'evidence', 'capabilities', 'overlay', 'outputs'])
const times: ReadonlySet<Field> = new Set<Field>(['lastSeenMs', 'rehearsedAtMs'])

const selected: readonly string[] = everyField.map((field) => columnOf[field].name)
const selectRehearsed: SqlStatement = {
  name: 'rehearsed-at',
  text: 'SELECT rehearsed_at_ms FROM observation WHERE node = $1',
}

const decode = (row: SqlRow): Observation =>
  Object.fromEntries(
    everyField.map((field) => {
      const value = (row[columnOf[field].name] ?? null) as string | number | null
      return [field, value !== null && documents.has(field) ? (JSON.parse(String(value)) as unknown) : value]
    }),
  ) as unknown as Observation

/** What was seen of the same fields is written together: a field that was not seen stays as it is stored. */
const byFields = (
  written: readonly Gathered[],
  missing: readonly string[],
): readonly (readonly [readonly Field[], readonly Gathered[]])[] => {
  const sets = new Map<string, { readonly fields: readonly Field[]; readonly rows: Gathered[] }>()
  for (const [node, seen] of written) {
    const fields = everyField.filter((field) => seen[field] !== undefined && !missing.includes(columnOf[field].name))
    const set = sets.get(fields.join()) ?? { fields, rows: [] }
    set.rows.push([node, seen])
    if (fields.length > 0) sets.set(fields.join(), set)
  }
  return [...sets.values()].map(({ fields, rows }) => [fields, rows])
}

const encode = (value: Observation[Field]): string | number | null =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : value

const upsertOf = ({ newerTime }: Dialect, fields: readonly Field[], rows: readonly Gathered[]): Insertion => ({
  name: ['observed', ...fields.map((field) => everyField.indexOf(field))].join('-'),
  into: 'observation',
  columns: [{ name: 'node', type: 'text' }, ...fields.map((field) => columnOf[field])],
  onConflict: `ON CONFLICT (node) DO UPDATE SET ${fields
    .map((field) => {
      const { name } = columnOf[field]
      return `${name} = ${times.has(field) ? newerTime(`excluded.${name}`, `observation.${name}`) : `excluded.${name}`}`
    })
    .join(', ')}`,
  rows: rows.map(([node, seen]) => [node, ...fields.map((field) => encode(seen[field] ?? null))]),
})
