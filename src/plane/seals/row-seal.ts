// The MAC of rows that make hosts execute something, or that grant the right to. The key is derived from the sealing key, which the
// database does not have: all replicas have the same one, and a store that is copied or restored keeps it (docs/decisions/tasks.md).

import { noTasks, tasksOff } from '#domain/core/task-types.ts'
import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { rolloutEndedAtMs } from '#domain/tasks/rollout.ts'
import { endedAtMs } from '#domain/tasks/task.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import { canonicalJson, type CanonicalValue } from '#plane/store/journal/canonical-json.ts'
import { sameBytes } from '#platform/bytes.ts'

/** `value` as it is stored, without its MAC. */
export type RowSeal = {
  macOf(kind: RowKind, value: object): string
  isMac(mac: unknown, kind: RowKind, value: object): boolean
}

/** `domainName` is asked each time: a first start decides it after the store is open. */
export const openRowSeal = (sealing: Pick<SealingKey, 'mac'>, domainName: () => string): RowSeal => {
  const macOf: RowSeal['macOf'] = (kind, value) =>
    // Through JSON, as the store keeps it: a field that is undefined is not there.
    sealing.mac('row', canonicalJson({ domain: domainName(), kind, value: JSON.parse(JSON.stringify(value)) as Json }))
  return {
    macOf,
    isMac: (mac, kind, value) =>
      typeof mac === 'string' && sameBytes(Buffer.from(mac, 'utf8'), Buffer.from(macOf(kind, value), 'utf8')),
  }
}

type Json = CanonicalValue

/** Kinds of rows of which every field is under the MAC. */
export const sealedKinds = [
  'task',
  'task-rollout',
  'rollout-nodes',
  'task-signers',
  'worker',
  'worker-issuer',
  'plan',
] as const
export type SealedKind = (typeof sealedKinds)[number]

export const isSealedKind = (kind: RowKind): kind is SealedKind => (sealedKinds as readonly RowKind[]).includes(kind)

/** Nothing acts on such a row any more. One that was forged gets its MAC when a plane has ended it. */
const isOver: { readonly [K in SealedKind]: (value: RowTypes[K]) => boolean } = {
  task: (task) => endedAtMs(task) !== null,
  'task-rollout': (rollout) => rolloutEndedAtMs(rollout) !== null,
  'rollout-nodes': () => false,
  'task-signers': () => false,
  worker: ({ revoked }) => revoked !== null,
  'worker-issuer': ({ removedAtMs }) => removedAtMs !== null,
  plan: ({ applied }) => applied !== null,
}

export const isRowOver = <K extends SealedKind>(kind: K, value: RowTypes[K]): boolean => isOver[kind](value)

/**
 * Kinds of which one field is under the MAC: the tasks that a vCluster or the domain allows. The value that allows none needs no MAC, so
 * rows of a release before have none and allow none.
 */
export const policyKinds = ['vcluster', 'domain'] as const
export type PolicyKind = (typeof policyKinds)[number]

export const isPolicyKind = (kind: RowKind): kind is PolicyKind => (policyKinds as readonly RowKind[]).includes(kind)

export const nothingAllowed: { readonly [K in PolicyKind]: RowTypes[K]['tasks'] } = {
  vcluster: noTasks,
  domain: tasksOff,
}

export const allowsNothing = (kind: PolicyKind, tasks: object): boolean =>
  canonicalJson(tasks as Json) === canonicalJson(nothingAllowed[kind])

/** What the MAC of a policy binds it to: an older vCluster of the same name was another one. */
export const policyOf = <K extends PolicyKind>(kind: K, value: RowTypes[K], tasks: object): object =>
  kind === 'vcluster'
    ? { name: value.name, createdAtMs: (value as RowTypes['vcluster']).createdAtMs, tasks }
    : { name: value.name, tasks }
