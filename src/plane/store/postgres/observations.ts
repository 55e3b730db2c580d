// What is seen of nodes: gathered in memory and written now and then, beside the commits and never with them. It is
// lossy by contract; a crash, or a database that is away, costs a few seconds of it and nothing else. Only what was seen
// is written, so that two replicas that have seen different things of one node keep both.

import type { NodeId } from '#domain/core/node.ts'
import type { Log } from '#platform/log.ts'
import type { PgRow, PgValue, Prepared } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import { nothingObserved, type Observation } from '#plane/store/contract/store.ts'
import { gatherReads } from './gathered-reads.ts'
import type { PgAccess } from './pg-access.ts'

export type PgObservations = {
  observe(node: NodeId, seen: Partial<Observation>): void
  of(node: NodeId): Promise<Observation>
  rehearsedAtMs(node: NodeId): Promise<number | null>
  /** Writes what is gathered. Resolves when that was tried. */
  flush(): Promise<void>
}

const mostGathered = 100_000
const slice = 500

export const openPgObservations = (deps: {
  readonly access: Pick<PgAccess, 'read' | 'write'>
  readonly timers: Timers
  readonly log: Log
}): PgObservations => {
  const gathered = new Map<NodeId, Partial<Observation>>()
  let flushing: Promise<void> | null = null
  const stored = gatherReads(deps.timers, async (nodes) => {
    const { rows } = await deps.access.read(select, [nodes])
    return new Map(rows.map(({ node, ...row }) => [node as NodeId, decode(row)]))
  })

  const writeSlice = async (written: readonly (readonly [NodeId, Partial<Observation>])[]): Promise<void> => {
    await deps.access.write(upsert, columnsOf(written))
    // Unless more was seen meanwhile: that goes with the next.
    for (const [node, seen] of written) if (gathered.get(node) === seen) gathered.delete(node)
  }

  const flush = async (): Promise<void> => {
    // In one order everywhere: replicas that write about the same nodes wait for each other and never in a circle.
    const all = [...gathered].sort(([one], [other]) => (one < other ? -1 : 1))
    try {
      for (let start = 0; start < all.length; start += slice) await writeSlice(all.slice(start, start + slice))
    } catch (error) {
      deps.log.warn({ err: error }, 'observations could not be written; they are tried again')
    }
  }

  return {
    observe(node, seen) {
      if (gathered.size >= mostGathered && !gathered.has(node)) return
      gathered.set(node, { ...gathered.get(node), ...seen })
    },
    async of(node) {
      const kept = (await stored(node)) ?? nothingObserved
      return { ...kept, ...gathered.get(node) }
    },
    async rehearsedAtMs(node) {
      const known = gathered.get(node)?.rehearsedAtMs
      if (known !== undefined) return known
      const { rows } = await deps.access.read(selectRehearsed, [node])
      return (rows[0]?.['atMs'] ?? null) as number | null
    },
    flush: () =>
      (flushing ??= flush().finally(() => {
        flushing = null
      })),
  }
}

const fields = [
  ['last_seen_ms', 'bigint', 'lastSeenMs'],
  ['agent_version', 'text', 'agentVersion'],
  ['source', 'text', 'source'],
  ['config_revision', 'bigint', 'configRevision'],
  ['report', 'text', 'report'],
  ['rehearsed_at_ms', 'bigint', 'rehearsedAtMs'],
  ['evidence', 'text', 'evidence'],
  ['capabilities', 'text', 'capabilities'],
  ['overlay', 'text', 'overlay'],
] as const

const columnsOf = (seen: readonly (readonly [NodeId, Partial<Observation>])[]): PgValue[] => [
  seen.map(([node]) => node),
  ...fields.map(([, , field]) => seen.map(([, observed]) => encode(observed[field] ?? null))),
]

const encode = (value: Observation[keyof Observation]): string | number | null =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : value

const decode = (row: PgRow): Observation => {
  const { report, evidence, capabilities, overlay, ...rest } = row as Record<keyof Observation, string | null>
  return {
    ...(rest as unknown as Omit<Observation, 'report' | 'evidence' | 'capabilities' | 'overlay'>),
    report: fromJson<Observation['report']>(report),
    evidence: fromJson<Observation['evidence']>(evidence),
    capabilities: fromJson<Observation['capabilities']>(capabilities),
    overlay: fromJson<Observation['overlay']>(overlay),
  }
}

const fromJson = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T))

const names = fields.map(([name]) => name)

const select: Prepared = {
  name: 'observation',
  text: `SELECT node, ${fields.map(([name, , field]) => `${name} AS "${field}"`).join(', ')} FROM observation
    WHERE node = ANY($1::text[])`,
}
const selectRehearsed: Prepared = {
  name: 'rehearsed-at',
  text: 'SELECT rehearsed_at_ms AS "atMs" FROM observation WHERE node = $1',
}
/** A replica that writes late what it saw earlier does not set a time back. Both pass over what was not seen. */
const kept = (name: string): string => (name.endsWith('_at_ms') || name === 'last_seen_ms' ? 'GREATEST' : 'COALESCE')

const upsert: Prepared = {
  name: 'keep-observations',
  text: `INSERT INTO observation (node, ${names.join(', ')})
    SELECT * FROM unnest($1::text[], ${fields.map(([, type], index) => `$${index + 2}::${type}[]`).join(', ')})
    ON CONFLICT (node) DO UPDATE SET
      ${names.map((name) => `${name} = ${kept(name)}(excluded.${name}, observation.${name})`).join(', ')}`,
}
