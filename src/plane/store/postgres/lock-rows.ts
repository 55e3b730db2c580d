// The first half of a group's transaction: everything its members rely on is locked, in an order that all replicas keep, and
// read. All of it is asked in one go; the answers come in the order of the questions.

import type { Denial } from '#domain/core/certificate.ts'
import type { NodeGroup, RowKind } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import type { PgResult, PgConnection, Prepared } from '#platform/postgres.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { FoundPlace } from '#plane/store/journal/journal-witness.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { GroupNeeds } from './group-needs.ts'
import { findPlaces } from './known-places.ts'
import { documentText } from './migrations.ts'
import { decodeShared } from './older-rows.ts'
import { rowKinds, rowStatements } from './row-statements.ts'
import { schemaLock } from './run-migrations.ts'

export type FoundRow = {
  readonly version: number
  /** By column; null: it has none. */
  readonly uniques: Readonly<Record<string, string | null>>
  readonly denial: Denial | null
}

export type FoundChain = {
  readonly chain: string
  readonly sequence: number
  readonly hash: Uint8Array
  readonly writer: ReplicaNumber | null
}

export type GroupFacts = {
  /** By the database's clock. */
  readonly leased: boolean
  /** The fencing token under which this replica leads; null: it does not. */
  readonly leaderNumber: number | null
  /** By kind and key, see `placeOf`. What is not in here is not there. */
  readonly rows: ReadonlyMap<string, FoundRow>
  /** Keys by kind, column and value, see `uniqueOf`. */
  readonly owners: ReadonlyMap<string, string>
  /** Which node has a hardware address, and whether that node is a tombstone. */
  readonly hardware: ReadonlyMap<string, { readonly node: NodeId; readonly tombstone: boolean }>
  readonly locked: ReadonlySet<NodeId>
  /** Nodes of which a replica under a lease has a channel. */
  readonly held: ReadonlySet<NodeId>
  /** Profiles and vClusters, see `groupOf`, under which there is a node that is not revoked. Of those that were asked for. */
  readonly used: ReadonlySet<string>
  /** Every tag of each node that may have one of those that were asked for. */
  readonly tagged: ReadonlyMap<NodeId, readonly string[]>
  /** Tags of hardware profiles; empty: not asked for. */
  readonly hardwareProfiles: ReadonlySet<string>
  readonly chains: readonly FoundChain[]
  /** What the database has at the places this replica knows. */
  readonly places: readonly FoundPlace[]
  /** The schema of the database until the transaction ends; null: not asked for. */
  readonly schema: number | null
}

export const placeOf = (kind: RowKind, key: string): string => `${kind} ${key}`
export const groupOf = ({ kind, name }: NodeGroup): string => `${kind} ${name}`
export const uniqueOf = (kind: RowKind, column: string, value: string): string => `${kind} ${column} ${value}`

export const lockRows = async (
  connection: PgConnection,
  self: ReplicaNumber,
  needs: GroupNeeds,
  asLeader: boolean,
  known: readonly SeenHead[],
  /** It is not the newest, so a step may be taken. Else there is none that this replica would not end before. */
  schemaMayChange: boolean,
): Promise<GroupFacts> => {
  const nothing: Promise<PgResult> = Promise.resolve({ rows: [], count: 0 })
  const looked: [RowKind, Promise<PgResult>][] = []
  const taken: [RowKind, Promise<PgResult>][] = []

  const begun = connection.exec('BEGIN')
  // Before anything else is locked: a step that holds this waits for locks on tables.
  const schemaLocked = schemaMayChange ? connection.run(lockSchema, [schemaLock]) : nothing
  const schema = schemaMayChange ? connection.run(readSchema) : nothing
  const lease = connection.run(lockLease, [self])
  const leads = asLeader ? connection.run(lockLeadership, [self]) : nothing
  const locked =
    needs.locks.length === 0
      ? nothing
      : connection.run(lockAdvisory, [needs.locks.map(({ key }) => key), needs.locks.map(({ exclusive }) => exclusive)])
  for (const kind of rowKinds) {
    const keys = needs.keys.get(kind)
    if (keys !== undefined) looked.push([kind, connection.run(rowStatements[kind].lock, [[...keys]])])
  }
  for (const [kind, values] of needs.uniques) {
    const statement = rowStatements[kind].taken
    const columns = (tableShapes[kind].unique ?? []).map((column) => [...(values.get(column) ?? [])])
    if (statement !== null) taken.push([kind, connection.run(statement, columns)])
  }
  const hardware =
    needs.nodesWritten.size === 0
      ? nothing
      : connection.run(readHardware, [[...needs.nodesWritten], [...needs.addresses]])
  const held = needs.unheld.size === 0 ? nothing : connection.run(readHeld, [[...needs.unheld]])
  // Behind the locks on their rows, which a commit that puts a node under one of them shares.
  const used = needs.unused.length === 0 ? nothing : connection.run(readUsed, namesBy(needs.unused))
  const isTagAsked = needs.soleTags.size > 0
  const tagged = isTagAsked
    ? connection.run(readTagged, [[...needs.soleTags].map((tag) => JSON.stringify(tag))])
    : nothing
  const profiles = isTagAsked ? connection.run(readHardwareProfiles) : nothing
  const chains = connection.run(readChains)
  const places = findPlaces((statement, values) => connection.run(statement, values), known)
  // All of them: a rejection that is not awaited, after an earlier one failed, would end the process.
  const rest = [...[...looked, ...taken].map(([, answer]) => answer), tagged, profiles]
  await Promise.all([begun, schemaLocked, schema, lease, leads, locked, hardware, held, used, chains, places, ...rest])

  const rows = new Map<string, FoundRow>()
  const owners = new Map<string, string>()
  for (const [kind, answer] of looked)
    for (const row of (await answer).rows) rows.set(placeOf(kind, row['key'] as string), foundRow(kind, row))
  for (const [kind, answer] of [...looked, ...taken])
    for (const row of (await answer).rows)
      for (const [column, value] of Object.entries(uniquesOf(kind, row)))
        if (value !== null) owners.set(uniqueOf(kind, column, value), row['key'] as string)
  return {
    leased: (await lease).count === 1,
    leaderNumber: ((await leads).rows[0]?.['number'] ?? null) as number | null,
    rows,
    owners,
    hardware: new Map(
      (await hardware).rows.map((row) => [
        row['value'] as string,
        { node: row['node'] as NodeId, tombstone: row['membership'] === 'revoked' },
      ]),
    ),
    locked: needs.keys.get('node') ?? new Set(),
    held: new Set((await held).rows.map((row) => row['node'] as NodeId)),
    used: new Set((await used).rows.map((row) => groupOf(row as NodeGroup))),
    tagged: new Map(
      (await tagged).rows.map((row) => [row['key'] as NodeId, JSON.parse(row['tags'] as string) as readonly string[]]),
    ),
    hardwareProfiles: new Set((await profiles).rows.map((row) => row['key'] as string)),
    chains: (await chains).rows as readonly FoundChain[],
    places: await places,
    schema: ((await schema).rows[0]?.['version'] ?? null) as number | null,
  }
}

const foundRow = (kind: RowKind, row: Readonly<Record<string, unknown>>): FoundRow => ({
  version: row['version'] as number,
  uniques: uniquesOf(kind, row),
  denial: kind === 'denial' ? decodeShared('denial', row).value : null,
})

const uniquesOf = (kind: RowKind, row: Readonly<Record<string, unknown>>): Record<string, string | null> =>
  Object.fromEntries((tableShapes[kind].unique ?? []).map((column) => [column, row[column] as string | null]))

/** A step has ended, or waits for this transaction. What is read behind it stays so. */
const lockSchema: Prepared = { name: 'group-lock-schema', text: 'SELECT pg_advisory_xact_lock_shared($1::bigint)' }
const readSchema: Prepared = { name: 'group-read-schema', text: 'SELECT version FROM muster_schema WHERE id = 1' }

/** A renewal passes it, and a removal of the lease waits for it. */
const lockLease: Prepared = {
  name: 'group-lock-lease',
  text: 'SELECT number FROM replica WHERE number = $1 AND expires_at > clock_timestamp() FOR KEY SHARE',
}

/** No replica takes over before this transaction has ended. */
const lockLeadership: Prepared = {
  name: 'group-lock-leadership',
  text: 'SELECT number FROM leadership WHERE id = 1 AND replica = $1 FOR SHARE',
}

/** One after the other, as they are given. */
const lockAdvisory: Prepared = {
  name: 'group-lock-advisory',
  text: `SELECT CASE WHEN exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END
    FROM unnest($1::bigint[], $2::boolean[]) AS wanted (key, exclusive)`,
}

/** The hardware of a node changes only together with its row, or in a transaction that has locked it. */
const readHardware: Prepared = {
  name: 'group-read-hardware',
  text: `SELECT held.value, held.node, node.membership
    FROM (SELECT value, node FROM hardware WHERE node = ANY($1::text[])
          UNION SELECT value, node FROM hardware WHERE value = ANY($2::text[])) AS held
    LEFT JOIN node ON node.key = held.node`,
}

const readHeld: Prepared = {
  name: 'group-read-held',
  text: `SELECT holder.node FROM holder JOIN replica ON replica.number = holder.replica
    WHERE holder.node = ANY($1::text[]) AND replica.expires_at > clock_timestamp()`,
}

const namesBy = (groups: readonly NodeGroup[]): string[][] =>
  (['profile', 'vcluster'] as const).map((kind) => groups.filter((one) => one.kind === kind).map(({ name }) => name))

const readUsed: Prepared = {
  name: 'group-read-used',
  text: `SELECT 'profile' AS kind, name FROM unnest($1::text[]) AS name
      WHERE EXISTS (SELECT FROM node WHERE profile = name AND membership <> 'revoked')
    UNION ALL SELECT 'vcluster', name FROM unnest($2::text[]) AS name
      WHERE EXISTS (SELECT FROM node WHERE vcluster = name AND membership <> 'revoked')`,
}

/** Of all nodes, which is seldom asked: the text is looked at first, and parsed only where a tag may be in it. A damaged row has none. */
const readTagged: Prepared = {
  name: 'group-read-tagged',
  text: `SELECT key, ${documentText(['machine', 'tags'])} AS tags FROM node
    WHERE EXISTS (SELECT FROM unnest($1::text[]) AS tag WHERE strpos(doc, tag) > 0)
      AND ${documentText(['machine', 'tags'])} LIKE '[%'`,
}

const readHardwareProfiles: Prepared = {
  name: 'group-read-hardware-profiles',
  text: `SELECT key FROM hardware_profile WHERE ${documentText(['removedAtMs'])} IS NULL`,
}

const readChains: Prepared = { name: 'group-read-chains', text: 'SELECT chain, sequence, hash, writer FROM chain' }
