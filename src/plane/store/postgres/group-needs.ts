// The rows and locks that a group needs before its members can be judged: pure, from their plans alone.
//
// An existing row has its own lock. An absent row has none, so a commit that relies on its absence and one that inserts it meet at
// an advisory lock: for rarely inserted rows one for each row, which those that rely on it share; for rows that are inserted all
// the time one for the kind, which those that insert share.

import type { NodeGroup, RowKind } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { sha256 } from '#platform/bytes.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { CommitPlan, PlannedWrite } from '#plane/store/commit/plan-commit.ts'
import { policyKinds } from './row-statements.ts'

export type AdvisoryLock = { readonly key: bigint; readonly exclusive: boolean }

export type GroupNeeds = {
  /** The rows that were read or are to be written. */
  readonly keys: ReadonlyMap<RowKind, ReadonlySet<string>>
  /** In the order in which all groups take them. */
  readonly locks: readonly AdvisoryLock[]
  /** By kind and column, the values that must be free. */
  readonly uniques: ReadonlyMap<RowKind, ReadonlyMap<string, ReadonlySet<string>>>
  readonly nodesWritten: ReadonlySet<NodeId>
  readonly addresses: ReadonlySet<string>
  readonly unheld: ReadonlySet<NodeId>
  readonly unused: readonly NodeGroup[]
  readonly soleTags: ReadonlySet<string>
}

const insertedOften: ReadonlySet<RowKind> = new Set<RowKind>(['node', 'token', 'certificate', 'denial'])

/** `alsoLocked`: nodes that no member reads or writes, and that must not change meanwhile. */
export const groupNeeds = (plans: readonly CommitPlan[], alsoLocked: ReadonlySet<NodeId>): GroupNeeds => {
  const keys = new Map<RowKind, Set<string>>()
  const uniques = new Map<RowKind, Map<string, Set<string>>>()
  const locks = new Map<bigint, boolean>()
  const nodesWritten = new Set<NodeId>()
  const addresses = new Set<string>()
  const unheld = new Set<NodeId>()

  const look = (kind: RowKind, key: string): void => void setIn(keys, kind).add(key)
  const lock = (key: bigint, exclusive: boolean): void => void locks.set(key, exclusive || (locks.get(key) ?? false))
  const rely = (kind: RowKind, key: string): void =>
    insertedOften.has(kind) ? lock(lockKey(kind), true) : lock(lockKey(kind, key), false)
  const insert = (kind: RowKind, key: string): void =>
    insertedOften.has(kind) ? lock(lockKey(kind), false) : lock(lockKey(kind, key), true)

  for (const node of alsoLocked) look('node', node)
  for (const plan of plans) {
    const written = new Set(plan.writes.map(({ row }) => `${row.kind} ${row.key}`))
    for (const { row, key, version } of plan.reads) {
      look(row, key)
      if (policyKinds.has(row) || (version === 0 && !written.has(`${row} ${key}`))) rely(row, key)
    }
    for (const planned of plan.writes) {
      const { kind, key } = planned.row
      look(kind, key)
      if (policyKinds.has(kind) || mayInsert(planned)) insert(kind, key)
      for (const { column, value } of uniquesSet(planned)) {
        if (value === null) continue
        const ofKind = uniques.get(kind) ?? new Map<string, Set<string>>()
        uniques.set(kind, ofKind)
        setIn(ofKind, column).add(value)
      }
    }
    for (const { kind, key } of plan.removes) look(kind, key)
    for (const holding of plan.holdings) {
      nodesWritten.add(holding.node)
      for (const address of holding.addresses) addresses.add(address)
    }
    // What one of two makes at once the other has to see. Putting a tag on takes only the lock of its row.
    if (plan.soleTags.length > 0) lock(lockKey('hardware-profile'), true)
    if (plan.unheld === null) continue
    look('node', plan.unheld)
    unheld.add(plan.unheld)
  }
  const unused = plans.flatMap((plan) => plan.unused)
  const soleTags = new Set(plans.flatMap((plan) => plan.soleTags))
  return { keys, locks: inOrder(locks), uniques, nodesWritten, addresses, unheld, unused, soleTags }
}

const mayInsert = ({ rule }: PlannedWrite): boolean => rule.kind !== 'after' || rule.version === 0

/** What a write sets of unique values; null: it has none. Those a row is born with stay its own. */
export const uniquesSet = (
  planned: PlannedWrite,
): readonly { readonly column: string; readonly value: string | null }[] => {
  const { fixed, unique = [], columns } = tableShapes[planned.row.kind]
  const names = Object.keys(columns)
  return unique
    .filter((column) => mayInsert(planned) || !fixed.includes(column))
    .map((column) => ({ column, value: planned.row.columns[names.indexOf(column)] as string | null }))
}

/** Of one row, or of a kind. */
export const lockKey = (kind: RowKind | 'chain', key?: string): bigint => {
  const hash = sha256(`muster ${kind}${key === undefined ? '' : ` ${key}`}`)
  return new DataView(hash.buffer, hash.byteOffset).getBigInt64(0)
}

const inOrder = (locks: ReadonlyMap<bigint, boolean>): readonly AdvisoryLock[] =>
  [...locks].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([key, exclusive]) => ({ key, exclusive }))

const setIn = <K, V>(map: Map<K, Set<V>>, key: K): Set<V> => {
  const found = map.get(key) ?? new Set<V>()
  map.set(key, found)
  return found
}
