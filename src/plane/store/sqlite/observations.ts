// What is seen of nodes: gathered in memory and written now and then, beside the commits and never with them. It is
// lossy by contract; a crash or a full disk costs a few seconds of it and nothing else.

import type { NodeId } from '#domain/core/node.ts'
import type { Log } from '#platform/log.ts'
import type { Database } from '#platform/sqlite.ts'
import { turn, type Timers } from '#platform/timers.ts'
import { nothingObserved, type Observation } from '#plane/store/contract/store.ts'
import { transact } from './transact.ts'

export type Observations = {
  observe(node: NodeId, seen: Partial<Observation>): void
  of(node: NodeId): Observation
  rehearsedAtMs(node: NodeId): number | null
  /** Writes what is gathered, a slice a turn. Resolves when that was tried. */
  flush(): Promise<void>
}

/** Kept as JSON. */
type Documents = 'report' | 'evidence' | 'capabilities' | 'overlay'
type Stored = Omit<Observation, Documents> & Readonly<Record<Documents, string | null>>

const fromJson = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T))
const toJson = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

const mostGathered = 100_000
const slice = 500

export const openObservations = (
  deps: { readonly timers: Timers; readonly log: Log },
  database: Database,
): Observations => {
  const select = database.prepare(
    `SELECT last_seen_ms AS lastSeenMs, agent_version AS agentVersion, source, config_revision AS configRevision,
       report, rehearsed_at_ms AS rehearsedAtMs, evidence, capabilities, overlay
     FROM observation WHERE node = ?`,
  )
  const selectRehearsed = database.prepare('SELECT rehearsed_at_ms AS atMs FROM observation WHERE node = ?')
  const upsert = database.prepare('INSERT OR REPLACE INTO observation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const gathered = new Map<NodeId, Observation>()

  const of = (node: NodeId): Observation => {
    const known = gathered.get(node)
    if (known !== undefined) return known
    const stored = select.get(node) as Stored | undefined
    if (stored === undefined) return nothingObserved
    return {
      ...stored,
      report: fromJson<Observation['report']>(stored.report),
      evidence: fromJson<Observation['evidence']>(stored.evidence),
      capabilities: fromJson<Observation['capabilities']>(stored.capabilities),
      overlay: fromJson<Observation['overlay']>(stored.overlay),
    }
  }

  const writeSlice = (nodes: readonly NodeId[]): void => {
    const written = nodes.flatMap((node) => {
      const seen = gathered.get(node)
      return seen === undefined ? [] : [[node, seen] as const]
    })
    transact(database, () => {
      for (const [node, seen] of written)
        upsert.run(
          node,
          seen.lastSeenMs,
          seen.agentVersion,
          seen.source,
          seen.configRevision,
          toJson(seen.report),
          seen.rehearsedAtMs,
          toJson(seen.evidence),
          toJson(seen.capabilities),
          toJson(seen.overlay),
        )
    })
    for (const [node] of written) gathered.delete(node)
  }

  return {
    observe(node, seen) {
      if (gathered.size >= mostGathered && !gathered.has(node)) return
      try {
        gathered.set(node, { ...of(node), ...seen })
      } catch (error) {
        deps.log.warn({ err: error, node }, 'an observation was lost')
      }
    },
    of,
    rehearsedAtMs(node) {
      const known = gathered.get(node)
      return known === undefined
        ? ((selectRehearsed.get(node)?.['atMs'] ?? null) as number | null)
        : known.rehearsedAtMs
    },
    async flush() {
      const nodes = [...gathered.keys()]
      for (let start = 0; start < nodes.length; start += slice) {
        if (start > 0) await turn(deps.timers)
        try {
          writeSlice(nodes.slice(start, start + slice))
        } catch (error) {
          deps.log.warn({ err: error }, 'observations could not be written; they are tried again')
          return
        }
      }
    },
  }
}
