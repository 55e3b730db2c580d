// The second half of a group's transaction: what was judged is written, a statement a kind. Every count is checked; one
// that does not fit means that another replica was quicker.

import type { RowKind } from '#domain/core/change.ts'
import type { PgResult, PgConnection, PgValue, Prepared } from '#platform/postgres.ts'
import type { HardwareChange, Judged, RowToWrite } from './judge-group.ts'
import { rowKinds, rowStatements } from './row-statements.ts'

/** The group is rolled back, and run again from its reads. */
export class Outrun extends Error {}

/** `expected` null: any count will do. */
export type Counted = {
  readonly what: string
  readonly expected: number | null
  readonly answer: Promise<PgResult>
}

export const checkCounts = async (all: readonly Counted[]): Promise<void> => {
  await Promise.all(all.map(({ answer }) => answer))
  for (const { what, expected, answer } of all) {
    const { count } = await answer
    if (expected !== null && count !== expected) throw new Outrun(`${what}: ${count} of ${expected}`)
  }
}

/** Updates first, then what is removed: a name that one row gives up may be taken by another. */
export const writeRows = (
  connection: PgConnection,
  { rows, removed, hardware: { givenUp, taken } }: Pick<Judged, 'rows' | 'removed' | 'hardware'>,
): readonly Counted[] => {
  const counted: Counted[] = []
  const run = (what: string, statement: Prepared, expected: number | null, values: readonly PgValue[]): void =>
    void counted.push({ what, expected, answer: connection.run(statement, values) })
  const ofKind = new Map<RowKind, RowToWrite[]>()
  for (const each of rows) ofKind.set(each.row.kind, [...(ofKind.get(each.row.kind) ?? []), each])
  const each = (write: (kind: RowKind, rows: readonly RowToWrite[]) => void): void =>
    rowKinds.forEach((kind) => write(kind, (ofKind.get(kind) ?? []).toSorted(byKey)))

  each((kind, all) => {
    const changed = all.filter(({ before }) => before > 0)
    if (changed.length > 0) run(`changed ${kind}`, rowStatements[kind].update, changed.length, updateArrays(changed))
  })
  for (const kind of rowKinds) {
    const gone = removed.filter((one) => one.kind === kind).toSorted((one, other) => (one.key < other.key ? -1 : 1))
    if (gone.length === 0) continue
    const keys = gone.map(({ key }) => key)
    run(`removed ${kind}`, rowStatements[kind].remove, gone.length, [keys, gone.map(({ before }) => before)])
    // What was observed of a node goes with its row.
    if (kind === 'node') run('observed', forgetObserved, null, [keys])
  }
  each((kind, all) => {
    const fresh = all.filter(({ before }) => before === 0)
    if (fresh.length > 0) run(`new ${kind}`, rowStatements[kind].insert, fresh.length, insertArrays(fresh))
  })
  const addresses = (pairs: HardwareChange['taken']): readonly PgValue[] => {
    const sorted = pairs.toSorted(([one], [other]) => (one < other ? -1 : 1))
    return [sorted.map(([address]) => address), sorted.map(([, node]) => node)]
  }
  if (givenUp.length > 0) run('hardware given up', giveUp, givenUp.length, addresses(givenUp))
  if (taken.length > 0) run('hardware taken', take, taken.length, addresses(taken))
  return counted
}

const byKey = (one: RowToWrite, other: RowToWrite): number => (one.row.key < other.row.key ? -1 : 1)

const updateArrays = (rows: readonly RowToWrite[]): readonly PgValue[] => [
  rows.map(({ row }) => row.key),
  rows.map(({ before }) => before),
  rows.map(({ version }) => version),
  rows.map(({ row }) => row.doc),
  ...columnsOf(rows.map(({ row }) => row.changing)),
]

const insertArrays = (rows: readonly RowToWrite[]): readonly PgValue[] => [
  rows.map(({ row }) => row.key),
  rows.map(({ version }) => version),
  rows.map(({ row }) => row.doc),
  ...columnsOf(rows.map(({ row }) => row.columns)),
]

const columnsOf = (rows: readonly (readonly unknown[])[]): readonly PgValue[] =>
  (rows[0] ?? []).map((_, at) => rows.map((row) => row[at] as PgValue))

const forgetObserved: Prepared = {
  name: 'group-forget-observed',
  text: 'DELETE FROM observation WHERE node = ANY($1::text[])',
}

const giveUp: Prepared = {
  name: 'group-give-up-hardware',
  text: `DELETE FROM hardware USING unnest($1::text[], $2::text[]) AS wanted (value, node)
    WHERE hardware.value = wanted.value AND hardware.node = wanted.node`,
}

const take: Prepared = {
  name: 'group-take-hardware',
  text: `INSERT INTO hardware (value, node) SELECT value, node FROM unnest($1::text[], $2::text[]) AS wanted (value, node)
    ON CONFLICT DO NOTHING`,
}
