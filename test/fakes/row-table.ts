// Rows in memory, committed by compare-and-set as the store does it: for model tests of decisions alone.

import assert from 'node:assert/strict'
import { type Change, nextVersion, type Row, type RowKind, type RowTypes, type Write } from '#domain/core/change.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'

export type RowTable = {
  get<K extends RowKind>(row: K, key: string): Row<RowTypes[K]> | null
  all<K extends RowKind>(row: K): readonly Row<RowTypes[K]>[]
  commit(change: Change): 'committed' | 'lost-race'
  readonly journal: readonly EntryDraft[]
}

export const rowTable = (): RowTable => {
  const rows = new Map<string, Row<unknown>>()
  const journal: EntryDraft[] = []
  const table: RowTable = {
    get: (row, key) => (rows.get(`${row}/${key}`) ?? null) as never,
    all: (row) => [...rows].filter(([key]) => key.startsWith(`${row}/`)).map(([, value]) => value) as never,
    journal,
    commit: (change) => {
      assert.ok(change.entries.length > 0, 'a change without a journal entry')
      change.writes.forEach((write) => assertSeen(change, write))
      const stale = change.reads.some(({ row, key, version }) => (table.get(row, key)?.version ?? 0) !== version)
      if (stale || change.writes.some((write) => takesHardware(table, write))) return 'lost-race'
      for (const write of change.writes) {
        const [key, of] = [`${write.put}/${keyOf(write)}`, keyOf(write)]
        const read = change.reads.find((one) => one.row === write.put && one.key === of)
        const version = nextVersion({ ...read, version: rows.get(key)?.version ?? 0 })
        rows.set(key, { value: write.value, version })
      }
      for (const { row, key } of change.removes ?? []) assert.ok(rows.delete(`${row}/${key}`), `${row}/${key} is gone`)
      journal.push(...change.entries)
      return 'committed'
    },
  }
  return table
}

const keyOf = (write: Write): string => (tableShapes[write.put].key as (value: unknown) => string)(write.value)

/** Denials, bans and certificates say the same by whichever write comes last; everything else is replaced knowingly. */
const assertSeen = (change: Change, write: Write): void => {
  if (write.put === 'denial' || write.put === 'key-ban' || write.put === 'certificate') return
  const seen = change.reads.some(({ row, key }) => row === write.put && key === keyOf(write))
  assert.ok(seen, `${write.put}/${keyOf(write)} is overwritten unseen`)
}

const takesHardware = (table: RowTable, write: Write): boolean =>
  write.put === 'node' &&
  write.value.membership.kind !== 'revoked' &&
  ownersOf(table, write.value.hardware).some((owner) => owner.value.id !== write.value.id)

export const ownersOf = (table: RowTable, hardware: Node['hardware']): readonly Row<Node>[] =>
  table
    .all('node')
    .filter(({ value }) => value.membership.kind !== 'revoked')
    .filter(
      ({ value }) =>
        value.hardware.macs.some((mac) => hardware.macs.includes(mac)) ||
        (hardware.bmcSerial !== null && value.hardware.bmcSerial === hardware.bmcSerial),
    )
