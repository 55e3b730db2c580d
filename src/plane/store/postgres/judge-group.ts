// Which members of a group are committed: pure, in their order, each seeing what those before it have written. Everything
// it goes by was read under locks, so what is found here still holds when it is written.

import type { Denial } from '#domain/core/certificate.ts'
import type { Write } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { lastsLonger, type CommitPlan, type PlannedWrite } from '#plane/store/commit/plan-commit.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import type { EncodedRow } from '#plane/store/commit/row-tables.ts'
import { uniquesSet } from './group-needs.ts'
import { placeOf, uniqueOf, type FoundRow, type GroupFacts } from './lock-rows.ts'

export type Judged = {
  /** The writes with their final values, or why there are none. */
  readonly verdicts: readonly (readonly Write[] | 'lost-race' | 'not-leading')[]
  /** What is to be written, each row once, as its last writer left it. */
  readonly rows: readonly RowToWrite[]
  readonly hardware: HardwareChange
}

/** `before` 0: it is new. */
export type RowToWrite = { readonly row: EncodedRow; readonly before: number; readonly version: number }

export type HardwareChange = {
  readonly givenUp: readonly (readonly [claim: string, node: NodeId])[]
  readonly taken: readonly (readonly [claim: string, node: NodeId])[]
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
    if (fencingToken !== null && fencingToken.number !== facts.fencingToken) return 'not-leading'
    for (const read of plan.reads) if (now.version(placeOf(read.row, read.key)) !== read.version) return 'lost-race'
    if (plan.unheld !== null && facts.held.has(plan.unheld)) return 'lost-race'
    const writes = applyPlan(now, plan)
    if (writes === 'clash') now.undo()
    else now.keep()
    return writes === 'clash' ? 'lost-race' : writes
  })
  return { verdicts, rows: now.rows(), hardware: now.hardware() }
}

const applyPlan = (now: GroupState, plan: CommitPlan): readonly Write[] | 'clash' => {
  const writes: Write[] = []
  for (const planned of plan.writes) {
    const write = applyWrite(now, planned)
    if (write === 'clash') return 'clash'
    writes.push(write)
  }
  return assign(now, plan) ? writes : 'clash'
}

/** The write with its final value: what is published must not undo what was kept. */
const applyWrite = (now: GroupState, planned: PlannedWrite): Write | 'clash' => {
  const { write, row, rule } = planned
  const version = now.version(placeOf(row.kind, row.key))
  switch (rule.kind) {
    case 'after':
      return version === rule.version && now.put(planned) ? write : 'clash'
    case 'keep-first':
      return version > 0 || now.put(planned) ? write : 'clash'
    case 'keep-longer': {
      const kept = now.denial(row.key)
      if (kept !== null && lastsLonger(kept, rule.denial)) return { put: 'denial', value: kept }
      return now.put(planned) ? write : 'clash'
    }
  }
}

/** Everything is given up before anything is taken, so an address can move between two nodes of one change. */
const assign = (now: GroupState, { holdings }: CommitPlan): boolean => {
  const wanted: [claim: string, node: NodeId][] = []
  for (const { node, claims, tombstone } of holdings) {
    for (const claim of now.claimsOf(node)) if (!claims.includes(claim)) now.hold(claim, null)
    for (const claim of claims) if (now.holder(claim) !== node && !tombstone) wanted.push([claim, node])
  }
  for (const [claim, node] of wanted) {
    const holder = now.holder(claim)
    // A revoked node takes nothing, and any node may take what it holds.
    if (holder !== null && !now.isTombstone(holder)) return false
    now.hold(claim, node)
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
  const written = new Map<string, RowToWrite & { readonly write: Write }>()
  const owners = new Map<string, string | null>(facts.owners)
  const uniques = new Map([...facts.rows].map(([place, row]) => [place, row.uniques]))
  const holders = new Map<string, NodeId | null>()
  const tombstones = new Map<NodeId, boolean>()
  /** Perhaps; `holders` says who does. */
  const claims = new Map<NodeId, string[]>()
  const claimed = (claim: string, node: NodeId): void => void claims.set(node, [...(claims.get(node) ?? []), claim])
  for (const [claim, { node, tombstone }] of facts.hardware) {
    holders.set(claim, node)
    tombstones.set(node, tombstone)
    claimed(claim, node)
  }
  const before = (place: string): FoundRow | null => facts.rows.get(place) ?? null
  const version = (place: string): number => written.get(place)?.version ?? before(place)?.version ?? 0

  return {
    version,
    denial(key: string): Denial | null {
      const place = placeOf('denial', key)
      const write = written.get(place)?.write
      return write?.put === 'denial' ? write.value : (before(place)?.denial ?? null)
    },
    /** False: a unique value is taken. */
    put(planned: PlannedWrite): boolean {
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
        version: version(place) + 1,
        write,
      })
      if (write.put === 'node') set(tombstones, write.value.id, write.value.membership.kind === 'revoked')
      return true
    },
    holder: (claim: string): NodeId | null => holders.get(claim) ?? null,
    claimsOf: (node: NodeId): readonly string[] =>
      (claims.get(node) ?? []).filter((claim) => holders.get(claim) === node),
    hold(claim: string, node: NodeId | null): void {
      set(holders, claim, node)
      if (node !== null) claimed(claim, node)
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
    rows: (): readonly RowToWrite[] => [...written.values()],
    hardware(): HardwareChange {
      const changed = [...holders].filter(([claim, node]) => node !== (facts.hardware.get(claim)?.node ?? null))
      return {
        givenUp: changed.flatMap(([claim]) => {
          const held = facts.hardware.get(claim)
          return held === undefined ? [] : [[claim, held.node] as const]
        }),
        taken: changed.flatMap(([claim, node]) => (node === null ? [] : [[claim, node] as const])),
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
