// Which members of a group are committed: pure, in their order, each seeing what those before it have written. Everything
// it goes by was read under locks, so what is found here still holds when it is written.

import type { Denial } from '#domain/core/certificate.ts'
import type { NodeGroup, RowKind, Write } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isUnder, tableShapes } from '#plane/store/commit/columns.ts'
import { inPlaceOf, type CommitPlan, type PlannedRemoval, type PlannedWrite } from '#plane/store/commit/plan-commit.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import type { EncodedRow } from '#plane/store/commit/row-tables.ts'
import { uniquesSet } from './group-needs.ts'
import { groupOf, placeOf, uniqueOf, type FoundRow, type GroupFacts } from './lock-rows.ts'

export type Judged = {
  /** The writes with their final values, or why there are none. */
  readonly verdicts: readonly (readonly Write[] | 'lost-race' | 'not-leading')[]
  /** What is to be written, each row once, as its last writer left it. */
  readonly rows: readonly RowToWrite[]
  readonly removed: readonly RowToRemove[]
  readonly hardware: HardwareChange
}

/** `before` 0: it is new. */
export type RowToWrite = { readonly row: EncodedRow; readonly before: number; readonly version: number }

/** `before`: the version it has in the database. */
export type RowToRemove = { readonly kind: RowKind; readonly key: string; readonly before: number }

export type HardwareChange = {
  readonly givenUp: readonly (readonly [address: string, node: NodeId])[]
  readonly taken: readonly (readonly [address: string, node: NodeId])[]
}

/** This node is not locked, so it is not known whether its hardware may be taken. */
export class NodeNotLocked extends Error {
  readonly node: NodeId
  constructor(node: NodeId) {
    super(`${node} is not locked`)
    this.node = node
  }
}

export type Judgeable = { readonly plan: CommitPlan; readonly fencingToken: FencingToken | null }

export const judgeGroup = (facts: GroupFacts, members: readonly Judgeable[]): Judged => {
  const now = openGroupState(facts)
  const verdicts = members.map(({ plan, fencingToken }) => {
    if (fencingToken !== null && fencingToken.number !== facts.leaderNumber) return 'not-leading'
    for (const read of plan.reads) if (now.version(placeOf(read.row, read.key)) !== read.version) return 'lost-race'
    if (plan.unheld !== null && facts.held.has(plan.unheld)) return 'lost-race'
    if (plan.unused.some((group) => facts.used.has(groupOf(group)) || now.puts(group))) return 'lost-race'
    const writes = applyPlan(now, plan)
    if (writes === 'clash') now.undo()
    else now.keep()
    return writes === 'clash' ? 'lost-race' : writes
  })
  return { verdicts, rows: now.rows(), removed: now.removed(), hardware: now.hardware() }
}

const applyPlan = (now: GroupState, plan: CommitPlan): readonly Write[] | 'clash' => {
  const writes: Write[] = []
  for (const planned of plan.writes) {
    const write = applyWrite(now, planned)
    if (write === 'clash') return 'clash'
    writes.push(write)
  }
  for (const removal of plan.removes) now.remove(removal)
  return assign(now, plan) && !plan.soleTags.some((tag) => now.isSharedTag(tag)) ? writes : 'clash'
}

/** The write with its final value: what is published must not undo what was kept. */
const applyWrite = (now: GroupState, planned: PlannedWrite): Write | 'clash' => {
  const { write, row, rule } = planned
  const version = now.version(placeOf(row.kind, row.key))
  switch (rule.kind) {
    case 'after':
      return version === rule.version && now.put(planned, rule.next) ? write : 'clash'
    case 'keep-first':
      return version > 0 || now.put(planned) ? write : 'clash'
    case 'keep-longer': {
      const kept = now.denial(row.key)
      if (kept === null) return now.put(planned) ? write : 'clash'
      const longer = inPlaceOf(kept, rule.denial)
      if (longer === null) return { put: 'denial', value: kept }
      return now.put({ ...planned, ...longer }) ? longer.write : 'clash'
    }
  }
}

/** Everything is given up before anything is taken, so an address can move between two nodes of one change. */
const assign = (now: GroupState, { holdings }: CommitPlan): boolean => {
  const wanted: [address: string, node: NodeId][] = []
  for (const { node, addresses, tombstone } of holdings) {
    for (const address of now.addressesOf(node)) if (!addresses.includes(address)) now.setOwner(address, null)
    for (const address of addresses) if (now.ownerOf(address) !== node && !tombstone) wanted.push([address, node])
  }
  for (const [address, node] of wanted) {
    const owner = now.ownerOf(address)
    // A revoked node takes nothing, and any node may take what it holds.
    if (owner !== null && !now.isTombstone(owner)) return false
    now.setOwner(address, node)
  }
  return true
}

type GroupState = ReturnType<typeof openGroupState>

/** What is in the database, with what the group has written so far laid over it. */
const openGroupState = (facts: GroupFacts) => {
  const undone: (() => void)[] = []
  /** Remembers how to take it back. */
  const set = <K, V>(map: Map<K, V>, key: K, value: V): void => {
    const before = map.get(key)
    undone.push(() => void (before === undefined ? map.delete(key) : map.set(key, before)))
    map.set(key, value)
  }
  /** Null: it was removed again. */
  const written = new Map<string, (RowToWrite & { readonly write: Write }) | null>()
  /** Null: it was written again. */
  const removed = new Map<string, RowToRemove | null>()
  const owners = new Map<string, string | null>(facts.owners)
  const uniques = new Map([...facts.rows].map(([place, row]) => [place, row.uniques]))
  const addressOwners = new Map<string, NodeId | null>()
  const tombstones = new Map<NodeId, boolean>()
  /** Perhaps; `addressOwners` says who does. */
  const addresses = new Map<NodeId, string[]>()
  const mayHave = (address: string, node: NodeId): void =>
    void addresses.set(node, [...(addresses.get(node) ?? []), address])
  for (const [address, { node, tombstone }] of facts.hardware) {
    addressOwners.set(address, node)
    tombstones.set(node, tombstone)
    mayHave(address, node)
  }
  const before = (place: string): FoundRow | null => facts.rows.get(place) ?? null
  const isGone = (place: string): boolean => (removed.get(place) ?? null) !== null
  const lastVersion = (place: string): number => written.get(place)?.version ?? before(place)?.version ?? 0
  const version = (place: string): number => (isGone(place) ? 0 : lastVersion(place))

  return {
    version,
    denial(key: string): Denial | null {
      const place = placeOf('denial', key)
      const write = written.get(place)?.write
      if (isGone(place)) return null
      return write?.put === 'denial' ? write.value : (before(place)?.denial ?? null)
    },
    /** False: a unique value is taken. `next`: where its version is not the one after that of the row. */
    put(planned: PlannedWrite, next: number | null = null): boolean {
      const { row, write } = planned
      const place = placeOf(row.kind, row.key)
      const had = uniques.get(place) ?? {}
      const wanted = uniquesSet(planned)
      for (const { column, value } of wanted) {
        const old = had[column] ?? null
        if (old !== null && old !== value) set(owners, uniqueOf(row.kind, column, old), null)
        if (value === null) continue
        const unique = uniqueOf(row.kind, column, value)
        if ((owners.get(unique) ?? row.key) !== row.key) return false
        set(owners, unique, row.key)
      }
      if (wanted.length > 0)
        set(uniques, place, { ...had, ...Object.fromEntries(wanted.map(({ column, value }) => [column, value])) })
      const bornAs = written.get(place)?.row
      set(written, place, {
        row: bornAs === undefined ? row : { ...row, columns: columnsKept(bornAs, row) },
        before: before(place)?.version ?? 0,
        version: next ?? lastVersion(place) + 1,
        write,
      })
      if (isGone(place)) set(removed, place, null)
      if (write.put === 'node') set(tombstones, write.value.id, write.value.membership.kind === 'revoked')
      return true
    },
    remove({ kind, key }: PlannedRemoval): void {
      const place = placeOf(kind, key)
      set(written, place, null)
      set(removed, place, { kind, key, before: before(place)?.version ?? 0 })
      if (kind === 'node') set(tombstones, key, true)
    },
    /** Whether a member before has put a node under it. */
    puts: (group: NodeGroup): boolean =>
      [...written.values()].some((row) => row?.write.put === 'node' && isUnder(row.write.value, group)),
    /** Whether a node has this tag of a hardware profile, and that of another one. */
    isSharedTag(tag: string): boolean {
      const profiles = new Set(facts.hardwareProfiles)
      const tagged = new Map(facts.tagged)
      for (const row of written.values()) {
        if (row?.write.put === 'node') tagged.set(row.write.value.id, row.write.value.machine.tags)
        if (row?.write.put !== 'hardware-profile') continue
        if (row.write.value.removedAtMs === null) profiles.add(row.write.value.tag)
        else profiles.delete(row.write.value.tag)
      }
      return [...tagged.values()].some(
        (tags) => tags.includes(tag) && tags.some((one) => one !== tag && profiles.has(one)),
      )
    },
    ownerOf: (address: string): NodeId | null => addressOwners.get(address) ?? null,
    addressesOf: (node: NodeId): readonly string[] =>
      (addresses.get(node) ?? []).filter((address) => addressOwners.get(address) === node),
    setOwner(address: string, node: NodeId | null): void {
      set(addressOwners, address, node)
      if (node !== null) mayHave(address, node)
    },
    isTombstone(node: NodeId): boolean {
      const tombstone = tombstones.get(node) ?? false
      if (tombstone && !facts.locked.has(node)) throw new NodeNotLocked(node)
      return tombstone
    },
    keep: (): void => void undone.splice(0),
    undo: (): void =>
      undone
        .splice(0)
        .reverse()
        .forEach((run) => run()),
    rows: (): readonly RowToWrite[] => [...written.values()].filter((row) => row !== null),
    /** One that was new in this group is not in the database. */
    removed: (): readonly RowToRemove[] =>
      [...removed.values()].filter((removal) => removal !== null && removal.before > 0) as readonly RowToRemove[],
    hardware(): HardwareChange {
      const changed = [...addressOwners].filter(
        ([address, node]) => node !== (facts.hardware.get(address)?.node ?? null),
      )
      return {
        givenUp: changed.flatMap(([address]) => {
          const held = facts.hardware.get(address)
          return held === undefined ? [] : [[address, held.node] as const]
        }),
        taken: changed.flatMap(([address, node]) => (node === null ? [] : [[address, node] as const])),
      }
    },
  }
}

/** Columns that a row is born with it also keeps when both happen in one group. */
const columnsKept = (born: EncodedRow, { kind, columns }: EncodedRow): EncodedRow['columns'] => {
  const shape = tableShapes[kind]
  return Object.keys(shape.columns).map(
    (name, at) => (shape.fixed.includes(name) ? born : { columns }).columns[at] ?? null,
  )
}
