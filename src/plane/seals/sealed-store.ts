// A store whose rows about tasks count only as a plane of this domain wrote them. What is committed gets its MAC here, and what is read is
// judged here, so that no flow can forget either. Somebody who can write to the database alone makes no host execute anything.

import type { Change, Row, RowKind, RowTypes, Write } from '#domain/core/change.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import type { EndedRights } from './ended-rights.ts'
import {
  allowsNothing,
  isPolicyKind,
  isRowOver,
  isSealedKind,
  nothingAllowed,
  policyOf,
  type PolicyKind,
  type RowSeal,
  type SealedKind,
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
    // A replica of the release before writes plans without a MAC, and knows no plan that could make a host execute anything.
    if (kind === 'plan' && store.unfinishedUpgrade() !== null) return value as RowTypes[K]
    // The MAC first: what it does not cover may lack any field.
    const isGood = rowSeal.isMac(mac, kind, value) && !ended.contradicts(kind, value)
    return (isGood ? value : { ...value, forged: true }) as RowTypes[K]
  }
  /** By the very value that the store hands out: every decision reads the row of the domain, which the store keeps in memory. */
  const judgedPolicies = new WeakMap<object, object>()
  const policy = <K extends PolicyKind>(kind: K, value: RowTypes[K]): RowTypes[K] => {
    const known = judgedPolicies.get(value)
    if (known !== undefined) return known as RowTypes[K]
    const judged = judgePolicy(kind, value)
    // One that is forged is reported each time.
    if (judged.tasks !== nothingAllowed[kind]) judgedPolicies.set(value, judged)
    return judged
  }
  const judgePolicy = <K extends PolicyKind>(kind: K, value: RowTypes[K]): RowTypes[K] => {
    const found = value.tasks as (RowTypes[K]['tasks'] & { readonly mac?: unknown }) | null | undefined
    const { mac, ...tasks } = found ?? { mac: 'none' }
    if (mac === undefined && allowsNothing(kind, tasks)) return value
    const isGood = allowsNothing(kind, tasks) || rowSeal.isMac(mac, kind, policyOf(kind, value, tasks))
    if (!isGood) onForged(kind, keyOf(kind, value))
    return { ...value, tasks: isGood ? (tasks as RowTypes[K]['tasks']) : nothingAllowed[kind] }
  }
  const opened = <K extends RowKind>(kind: K, stored: RowTypes[K]): RowTypes[K] => {
    if (isSealedKind(kind)) return whole(kind, stored as never)
    return isPolicyKind(kind) ? policy(kind, stored as never) : stored
  }
  const sealed = (write: Write): Write => {
    const { put, value } = write
    if (isSealedKind(put)) {
      const { forged, ...rest } = value as RowTypes[SealedKind]
      const isTaken = forged !== true || isRowOver(put, rest as never)
      return { put, value: isTaken ? { ...rest, mac: rowSeal.macOf(put, rest) } : rest } as Write
    }
    if (!isPolicyKind(put)) return write
    const { tasks } = value as RowTypes[PolicyKind]
    if (allowsNothing(put, tasks)) return write
    const mac = rowSeal.macOf(put, policyOf(put, value as never, tasks))
    return { put, value: { ...value, tasks: { ...tasks, mac } } } as unknown as Write
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
    const isElsewhere = (isSealedKind(kind) || isPolicyKind(kind)) && keyOf(kind, value) !== key
    const isForged = isElsewhere || isMarked(value)
    if (!isForged) return value === now.value ? now : { ...now, value }
    // A plan that a replica of the release before has left has none.
    if (kind !== 'plan' || 'mac' in now.value) onForged(kind, key)
    // Of a policy under another name only the part is good that allows nothing.
    const shut = isPolicyKind(kind) ? { ...value, tasks: nothingAllowed[kind] } : { ...value, forged: true }
    return { ...now, value: shut }
  }

  return {
    ...store,
    async get(kind, key) {
      const row = await store.get(kind, key)
      return row === null || !(isSealedKind(kind) || isPolicyKind(kind)) ? row : judged(kind, row, key)
    },
    async list(kind, query) {
      const rows = await store.list(kind, query)
      if (kind === 'operator-key') return rows.filter(({ value }) => isKey(value as RowTypes['operator-key']))
      if (!isSealedKind(kind) && !isPolicyKind(kind)) return rows
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

const isMarked = (value: object): boolean => 'forged' in value && value.forged === true

const keyOf = <K extends RowKind>(kind: K, value: RowTypes[K]): string => tableShapes[kind].key(value)
