// A store whose rows about tasks count only as a plane of this domain wrote them. What is committed gets its MAC here, and what is read is
// judged here, so that no flow can forget either. Somebody who can write to the database alone makes no host execute anything.

import type { Change, Row, RowKind, RowTypes, Write } from '#domain/core/change.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import type { EndedRights } from './ended-rights.ts'
import {
  boundPart,
  isPartedKind,
  isRowOver,
  isSealedKind,
  mayLackMac,
  sealedParts,
  type PartedKind,
  type RowSeal,
  type SealedKind,
  type SealedPart,
} from './row-seal.ts'

export type SealParts = {
  readonly rowSeal: RowSeal
  /** Of the keys in whose name tasks are queued. */
  readonly keySeal: Pick<KeySeal, 'isSealed'>
  readonly ended: EndedRights
  /** Called each time such a row is met. */
  readonly onForged: (kind: RowKind, key: string) => void
}

export const sealedStore = (store: Store, { rowSeal, keySeal, ended, onForged }: SealParts): Store => {
  const whole = <K extends SealedKind>(kind: K, stored: RowTypes[K]): RowTypes[K] => {
    const { mac, forged: _, ...value } = stored as RowTypes[K] & { readonly mac?: unknown; readonly forged?: true }
    // A replica of 0.5 writes plans without a MAC, and knows no plan that could make a host execute anything.
    if (kind === 'plan' && mac === undefined && mayLackMac(store.unfinishedUpgrade())) return value as RowTypes[K]
    // The MAC first: what it does not cover may lack any field.
    const isGood = rowSeal.isMac(mac, kind, value) && !ended.contradicts(kind, value)
    return (isGood ? value : { ...value, forged: true }) as RowTypes[K]
  }
  /** By the very value that the store hands out: every decision reads the row of the domain, which the store keeps in memory. */
  const judgedRows = new WeakMap<object, object>()
  const parted = <K extends PartedKind>(kind: K, value: RowTypes[K]): RowTypes[K] => {
    const known = judgedRows.get(value)
    if (known !== undefined) return known as RowTypes[K]
    const parts = sealedParts[kind].map((part) => ({ part, judged: judgedPart(kind, value, part) }))
    let row = value
    for (const { part, judged } of parts)
      if (judged.value !== part.in(value)) row = part.replacedIn(row, judged.value) as RowTypes[K]
    const isGood = parts.every(({ judged }) => judged.isGood)
    // One that is forged is reported each time.
    if (!isGood) onForged(kind, keyOf(kind, value))
    else if (ended.overlaysAdopted()) judgedRows.set(value, row)
    return row
  }
  const judgedPart = <K extends PartedKind>(
    kind: K,
    value: RowTypes[K],
    part: SealedPart,
  ): { readonly value: unknown; readonly isGood: boolean } => {
    const found = part.in(value)
    if (found === part.nothing) return { value: found, isGood: true }
    if (typeof found !== 'object' || found === null) return { value: part.nothing, isGood: false }
    const { mac, ...rest } = found as { readonly mac?: unknown }
    const needsNone = part.isNothing(rest) || (part.isAdopted && !ended.overlaysAdopted())
    if (mac === undefined && needsNone) return { value: found, isGood: true }
    const isGood = part.isNothing(rest) || rowSeal.isMac(mac, kind, boundPart(kind, value, part.name, rest))
    return { value: isGood ? rest : part.nothing, isGood }
  }
  const opened = <K extends RowKind>(kind: K, stored: RowTypes[K]): RowTypes[K] => {
    if (isSealedKind(kind)) return whole(kind, stored as never)
    return isPartedKind(kind) ? parted(kind, stored as never) : stored
  }
  const sealed = (write: Write): Write => {
    const { put, value } = write
    if (isSealedKind(put)) {
      const { forged, ...rest } = value as RowTypes[SealedKind]
      const isTaken = forged !== true || isRowOver(put, rest as never)
      return { put, value: isTaken ? { ...rest, mac: rowSeal.macOf(put, rest) } : rest } as Write
    }
    if (!isPartedKind(put)) return write
    let row: object = value
    for (const part of sealedParts[put]) {
      const found = part.in(value)
      if (typeof found !== 'object' || found === null || part.isNothing(found)) continue
      const mac = rowSeal.macOf(put, boundPart(put, value as never, part.name, found))
      row = part.replacedIn(row, { ...found, mac })
    }
    return { put, value: row } as Write
  }
  const openedCommit = (committed: Committed): Committed => ({
    ...committed,
    writes: committed.writes.map(
      (write) => ({ put: write.put, value: opened(write.put, write.value as never) }) as Write,
    ),
  })

  /** A row that its own entry has overtaken while it was read is read once more, and is not taken for forged. */
  const judged = async <K extends RowKind>(
    kind: K,
    row: Row<RowTypes[K]>,
    key: string,
  ): Promise<Row<RowTypes[K]> | null> => {
    const first = opened(kind, row.value)
    const now = isMarked(first) ? await store.get(kind, key) : row
    if (now === null) return null
    const value = now === row ? first : opened(kind, now.value)
    const isElsewhere = (isSealedKind(kind) || isPartedKind(kind)) && keyOf(kind, value) !== key
    const isForged = isElsewhere || isMarked(value)
    if (!isForged) return value === now.value ? now : { ...now, value }
    // A plan that a replica of the release before has left has none.
    if (kind !== 'plan' || 'mac' in now.value) onForged(kind, key)
    return { ...now, value: isPartedKind(kind) ? (shut(kind, value) as RowTypes[K]) : { ...value, forged: true } }
  }

  return {
    ...store,
    async get(kind, key) {
      const row = await store.get(kind, key)
      return row === null || !(isSealedKind(kind) || isPartedKind(kind)) ? row : judged(kind, row, key)
    },
    async list(kind, query) {
      const rows = await store.list(kind, query)
      if (kind === 'operator-key') return rows.filter(({ value }) => isKey(value as RowTypes['operator-key']))
      if (!isSealedKind(kind) && !isPartedKind(kind)) return rows
      const found = await Promise.all(rows.map((row) => judged(kind, row, keyOf(kind, row.value))))
      return found.filter((row) => row !== null)
    },
    async commit(change: Change, fencingToken) {
      const originals = new Map(change.writes.map((write) => [sealed(write), write]))
      const outcome = await store.commit({ ...change, writes: [...originals.keys()] }, fencingToken)
      if (outcome === 'lost-race') return outcome
      // What this commit wrote is known. Where the store knows a newer row, that is published instead.
      const writes = outcome.writes.flatMap(
        (write) => originals.get(write) ?? openedCommit({ ...outcome, writes: [write] }).writes,
      )
      return { ...outcome, writes }
    },
    onForeignCommit: (run) => store.onForeignCommit((committed) => run(openedCommit(committed))),
  }

  function isKey(key: RowTypes['operator-key']): boolean {
    return key.revokedAtMs !== null || (keySeal.isSealed(key) && !ended.contradicts('operator-key', key))
  }
}

/** As a row that was filed under another name: it allows and starts nothing. */
const shut = (kind: PartedKind, value: object): object =>
  (sealedParts[kind] as readonly SealedPart[]).reduce((row, part) => part.replacedIn(row, part.nothing), value)

const isMarked = (value: object): boolean => 'forged' in value && value.forged === true

const keyOf = <K extends RowKind>(kind: K, value: RowTypes[K]): string => tableShapes[kind].key(value)
