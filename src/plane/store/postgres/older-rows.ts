// Rows as the release before knows them. Its planes write such rows until the last of them has stopped, and so does a plane of
// this release for as long as the schema is theirs (schema-gate.ts). No step since 0.4.0 writes them anew: what such a row lacks is
// filled in where it is read.

import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { defaultProgramListMs, maintenancePolicy, openIssuance } from '#domain/core/domain-settings.ts'
import { noOverlay } from '#domain/fleet/overlay.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { defaultProbeSilenceMs, signedHere } from '#domain/core/profile.ts'
import { noTasks, tasksOff } from '#domain/core/task-types.ts'
import { noWireguard } from '#domain/core/wireguard.ts'
import type { CommitPlan, PlannedWrite } from '#plane/store/commit/plan-commit.ts'
import { decodeRow } from '#plane/store/commit/row-tables.ts'
import { fieldsSince, kindsSince, presentSince, removalsSince, valuesSince } from './schema-since.ts'

type Lacking<T> = { readonly [F in keyof T]?: T[F] | Partial<T[F]> }

/** For every field that is younger than its kind (schema-since.ts). */
const lacking: { readonly [K in RowKind]?: Lacking<RowTypes[K]> } = {
  node: { allocations: 0, wireguard: null, machine: nothingTagged, provisioning: null, scrapeAddress: null },
  profile: {
    certificate: signedHere,
    wireguard: noWireguard,
    probeSilenceMs: defaultProbeSilenceMs,
    outputs: [],
    deletedAtMs: null,
  },
  domain: {
    issuance: openIssuance,
    overlayPrefix: null,
    maintenance: { policy: maintenancePolicy, timeSync: null },
    programListMs: defaultProgramListMs,
    tasks: tasksOff,
  },
  vcluster: { overlay: noOverlay, outputs: [], tasks: noTasks },
  token: { serverName: null },
  'operator-key': { expiresAtMs: null },
  denial: { atMs: 0, reason: 'unspecified' },
  issuer: { compromisedAtMs: null },
}

/** A field, or the fields of an object, as schema-since.ts has them. */
type Since = number | { readonly [name: string]: Since }

/** The document itself where it lacks nothing: most do not. */
export const filled = (document: object, values: object, since: Since): object => {
  const missing: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(values)) {
    const found: unknown = (document as Record<string, unknown>)[name]
    const inside = typeof since === 'number' ? since : (since[name] ?? 1)
    // A damaged row may lack an object that this release has added to: a part of it would look like the whole.
    if (found === undefined && isPartOf(value, inside)) continue
    const part =
      found === undefined
        ? value
        : isObject(found) && isObject(value) && isOfSeveralSchemas(inside)
          ? filled(found, value, inside)
          : found
    if (part !== found) missing[name] = part
  }
  return Object.keys(missing).length === 0 ? document : { ...document, ...missing }
}

/** An object of one schema is in an older row whole or not at all. A row that lost a part of it is damaged, and stays visibly so. */
const isOfSeveralSchemas = (since: Since): boolean =>
  typeof since !== 'number' && new Set(fieldsIn(since).map((field) => field.since)).size > 1

const isPartOf = (value: unknown, since: Since): boolean =>
  isObject(value) && typeof since !== 'number' && Object.keys(since).some((name) => !Object.hasOwn(value, name))

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fillers = Object.fromEntries(
  Object.entries(lacking).map(([kind, values]) => {
    const since = fieldsSince[kind as RowKind] as Since
    return [kind, (document: object) => filled(document, values, since)]
  }),
) as { readonly [K in RowKind]?: (document: object) => object }

/** A document with everything that this release knows of its kind. */
export const wholeDocument = (kind: RowKind, document: object): object => fillers[kind]?.(document) ?? document

/** A row as `SELECT key, version, doc` gives it, whichever plane has written it. */
export const decodeShared = <K extends RowKind>(kind: K, found: Record<string, unknown>): Row<RowTypes[K]> =>
  decodeRow(kind, found, fillers[kind])

/** A field that rows of a kind do not have yet on some schema, and the value that stands for it there. */
export type YoungField = { readonly path: readonly string[]; readonly since: number; readonly value: unknown }

/** Of every kind, the fields that are younger than the kind itself. */
export const youngFields = Object.fromEntries(
  (Object.keys(fieldsSince) as RowKind[]).map((kind) => [
    kind,
    fieldsIn(fieldsSince[kind])
      .filter(({ since }) => since > kindsSince[kind].schema)
      .map((field) => ({ ...field, value: at(lacking[kind], field.path) })),
  ]),
) as unknown as Readonly<Record<RowKind, readonly YoungField[]>>

/** What of a plan has no place on an older schema, in words; null: all of it has one, or is derived by the step. */
export const refusedOn = (
  schema: number,
  { writes, removes }: Pick<CommitPlan, 'writes' | 'removes'>,
): string | null => {
  if (removes.length > 0 && schema < removalsSince) return 'the removal of a row'
  for (const { write } of writes) {
    const { schema: kindSince, before } = kindsSince[write.put]
    if (kindSince > schema && before === 'refused') return `a row of the kind ${write.put}`
    const field = absentOn(schema, write.put).find(({ path, value }) => !isSame(at(write.value, path), value))
    if (field !== undefined) return `${field.path.join('.')} of a ${write.put}`
    for (const [name, since] of Object.entries(valuesSince[write.put] ?? {})) {
      const value = String((write.value as unknown as Readonly<Record<string, unknown>>)[name])
      if ((since[value] ?? 1) > schema) return `${name} ${value} of a ${write.put}`
    }
    for (const [path, since] of Object.entries(presentSince[write.put] ?? {}))
      if (since > schema && isPresent(write.value, path.split('.'))) return `${path} of a ${write.put}`
  }
  return null
}

const isPresent = (value: unknown, path: readonly string[]): boolean => {
  if (Array.isArray(value)) return value.some((one) => isPresent(one, path))
  const [name = '', ...rest] = path
  if (!isObject(value) || !Object.hasOwn(value, name)) return false
  return rest.length === 0 || isPresent((value as Readonly<Record<string, unknown>>)[name], rest)
}

/** The plan with what an older schema has a place for, and with documents as the release of that schema writes them. */
export const writableOn = (schema: number, plan: CommitPlan): CommitPlan => {
  const isThere = (kind: RowKind): boolean => kindsSince[kind].schema <= schema
  return {
    ...plan,
    reads: plan.reads.filter(({ row }) => isThere(row)),
    writes: plan.writes.filter(({ row }) => isThere(row.kind)).map((planned) => withoutYoung(schema, planned)),
  }
}

const withoutYoung = (schema: number, planned: PlannedWrite): PlannedWrite => {
  const absent = absentOn(schema, planned.row.kind)
  if (absent.length === 0) return planned
  const document = JSON.parse(planned.row.doc) as Record<string, unknown>
  for (const { path } of absent) remove(document, path)
  return { ...planned, row: { ...planned.row, doc: JSON.stringify(document) } }
}

/** Together with the objects that it leaves empty: an older release does not know those either. */
const remove = (from: Record<string, unknown>, [name = '', ...rest]: readonly string[]): void => {
  const part = from[name]
  if (rest.length > 0 && isObject(part)) {
    remove(part as Record<string, unknown>, rest)
    if (Object.keys(part).length > 0) return
  }
  delete from[name]
}

const absentOn = (schema: number, kind: RowKind): readonly YoungField[] =>
  youngFields[kind].filter(({ since }) => since > schema)

function fieldsIn(
  table: object,
  path: readonly string[] = [],
): { readonly path: readonly string[]; readonly since: number }[] {
  return Object.entries(table).flatMap(([name, since]: [string, number | object]) =>
    typeof since === 'number' ? [{ path: [...path, name], since }] : fieldsIn(since, [...path, name]),
  )
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => (found as Record<string, unknown> | undefined)?.[name], value)
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
