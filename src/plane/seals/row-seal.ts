// The MAC of rows that make hosts execute something, that grant the right to, or that say whose certificates are trusted. The key is derived from the sealing key, which the
// database does not have: all replicas have the same one, and a store that is copied or restored keeps it (docs/decisions/tasks.md).

import { noTasks, tasksOff } from '#domain/core/task-types.ts'
import { isOver } from '#domain/issuers/migration.ts'
import { noOverlay } from '#domain/fleet/overlay.ts'
import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { rolloutEndedAtMs } from '#domain/tasks/rollout.ts'
import { endedAtMs } from '#domain/tasks/task.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import type { UnfinishedUpgrade } from '#plane/store/contract/store.ts'
import { canonicalJson, type CanonicalValue } from '#plane/store/journal/canonical-json.ts'
import { sameBytes } from '#platform/bytes.ts'

/** `value` as it is stored, without its MAC. */
export type RowSeal = {
  macOf(kind: RowKind, value: object): string
  isMac(mac: unknown, kind: RowKind, value: object): boolean
}

/** `domainName` is asked each time: a first start decides it after the store is open. */
/** The schema of the first release that gives rows a MAC: replicas that run on an older one give none. */
const sealedSince = 6

/** A release before may be writing rows beside this one, without a MAC. */
export const mayLackMac = (upgrade: UnfinishedUpgrade | null): boolean =>
  upgrade !== null && upgrade.schema < sealedSince

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
  'outside-issuer',
  'issuer-migration',
] as const
export type SealedKind = (typeof sealedKinds)[number]

export const isSealedKind = (kind: RowKind): kind is SealedKind => (sealedKinds as readonly RowKind[]).includes(kind)

/** Nothing acts on such a row any more. One that was forged gets its MAC when a plane has ended it. */
const isRowOfKindOver: { readonly [K in SealedKind]: (value: RowTypes[K]) => boolean } = {
  task: (task) => endedAtMs(task) !== null,
  'task-rollout': (rollout) => rolloutEndedAtMs(rollout) !== null,
  'rollout-nodes': () => false,
  'task-signers': () => false,
  worker: ({ revoked }) => revoked !== null,
  'worker-issuer': ({ removedAtMs }) => removedAtMs !== null,
  plan: ({ applied }) => applied !== null,
  'outside-issuer': ({ state }) => state.kind === 'retired',
  'issuer-migration': isOver,
}

export const isRowOver = <K extends SealedKind>(kind: K, value: RowTypes[K]): boolean => isRowOfKindOver[kind](value)

/**
 * A part of a row with a MAC of its own, which lies in the part: the tasks that a vCluster or the domain allows, and what they have hosts
 * start. `nothing` allows and starts nothing. Such a part needs no MAC, so rows of a release before have none.
 */
export type SealedPart = {
  readonly name: string
  in(value: object): unknown
  replacedIn(value: object, part: unknown): object
  readonly nothing: unknown
  isNothing(part: object): boolean
  /** Where it starts something: rows of a release before have it without a MAC, until they were adopted (adopt-overlays.ts). */
  readonly isAdopted: boolean
}

const tasksPart = (nothing: object): SealedPart => ({
  name: 'tasks',
  in: (value) => (value as { readonly tasks?: unknown }).tasks,
  replacedIn: (value, tasks) => ({ ...value, tasks }),
  nothing,
  isNothing: (tasks) => canonicalJson(tasks as Json) === canonicalJson(nothing as Json),
  isAdopted: false,
})

const overlayPart: SealedPart = {
  name: 'overlay',
  in: (value) => (value as { readonly overlay?: unknown }).overlay,
  replacedIn: (value, overlay) => ({ ...value, overlay }),
  nothing: noOverlay,
  isNothing: (overlay) => isEmpty(overlay, 'services') && isEmpty(overlay, 'checks'),
  isAdopted: true,
}

const isEmpty = (overlay: object, list: string): boolean => {
  const found = (overlay as Readonly<Record<string, unknown>>)[list]
  return Array.isArray(found) && found.length === 0
}

type WithTimeSync = { readonly maintenance?: { readonly timeSync?: unknown } }

/** Runs on every node, also on those in no vCluster. */
const timeSyncPart: SealedPart = {
  name: 'timeSync',
  // A damaged row may lack all of it.
  in: (value) => (value as WithTimeSync).maintenance?.timeSync ?? null,
  replacedIn: (value, timeSync) => ({
    ...value,
    maintenance: { ...(value as WithTimeSync).maintenance, timeSync },
  }),
  nothing: null,
  isNothing: () => false,
  isAdopted: true,
}

/** Kinds of rows with such parts. */
export const sealedParts = {
  vcluster: [tasksPart(noTasks), overlayPart],
  domain: [tasksPart(tasksOff), timeSyncPart],
} as const satisfies Partial<Record<RowKind, readonly SealedPart[]>>

export type PartedKind = keyof typeof sealedParts

export const isPartedKind = (kind: RowKind): kind is PartedKind => Object.hasOwn(sealedParts, kind)

/** What the MAC of a part binds it to: an older vCluster of the same name was another one. */
export const boundPart = <K extends PartedKind>(kind: K, value: RowTypes[K], name: string, part: object): object =>
  kind === 'vcluster'
    ? { name: value.name, createdAtMs: (value as RowTypes['vcluster']).createdAtMs, [name]: part }
    : { name: value.name, [name]: part }
