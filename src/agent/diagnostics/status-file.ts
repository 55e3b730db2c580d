// What the agent writes down about itself for `muster agent status`. Times are RFC 3339; no secrets.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { failureClasses } from '#domain/core/node.ts'
import { diskSpace, writeFaultOf } from '#platform/disk-space.ts'
import { readFileIfAny } from '#platform/files.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { matchesSchema, recordOf } from '#platform/json-schema.ts'
import { diskTrouble } from '#agent/state/disk-trouble.ts'

const text = Type.String({ maxLength: 1024 })
const orNull = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const phases = ['starting', 'enrolling', 'running', 'rejoining', 'stopped'] as const
export type Phase = (typeof phases)[number]

/** Where something can be wrong: one trouble each, so that the file stays small. */
export const places = [
  'enrollment',
  'channel',
  'renewal',
  'recovery',
  'rehearsal',
  'endpoints',
  'storage',
  'clock',
] as const
export type Place = (typeof places)[number]

const StatusTrouble = Type.Object({
  place: Type.Enum([...places]),
  code: text,
  text,
  next: text,
  since: text,
  attempts: Type.Integer({ minimum: 0 }),
  next_try_at: orNull(text),
  // Older agents leave it out.
  class: Type.Optional(orNull(Type.Enum([...failureClasses]))),
  evidence: Type.Optional(recordOf(text, Type.Union([text, Type.Number(), Type.Null()]))),
  correlation: Type.Optional(orNull(text)),
})
export type StatusTrouble = Static<typeof StatusTrouble>

export const StatusFile = Type.Object({
  version: Type.Literal(1),
  pid: Type.Integer({ minimum: 1 }),
  birth: orNull(text),
  /** Whether it handles `agent renew --now`; the signal would end an older agent. */
  nudges: Type.Optional(Type.Boolean()),
  agent_version: text,
  started_at: text,
  written_at: text,
  phase: Type.Enum([...phases]),
  phase_since: text,
  source: Type.Optional(text),
  node_id: orNull(text),
  domain: orNull(text),
  profile: orNull(text),
  vcluster: orNull(text),
  certificate: orNull(Type.Object({ serial: text, not_after: text, renew_at: text, key: text })),
  /** SHA-256 of roots, hex; older agents leave it out. */
  trust: Type.Optional(Type.Object({ plane: Type.Array(text), recovery: Type.Array(text), certificate: orNull(text) })),
  channel: Type.Object({ open: Type.Boolean(), since: text, url: orNull(text) }),
  /** When the plane last answered, and how far the agent's clock is behind; older agents leave it out. */
  plane: Type.Optional(Type.Object({ last_exchange: orNull(text), clock_behind_ms: Type.Number() })),
  /** Numbered by this process. Left out before the first. */
  reports: Type.Optional(Type.Object({ sent: Type.Integer(), acknowledged: Type.Integer() })),
  /** This node in the WireGuard network; left out where it takes no part. */
  wireguard: Type.Optional(
    Type.Object({
      interface: text,
      kind: orNull(Type.Enum(['kernel', 'userspace'])),
      address: orNull(text),
      peers: Type.Integer({ minimum: 0 }),
      /** Of the set in force; null: none is, or it is not known which. */
      revision: orNull(text),
      trouble: orNull(Type.Object({ code: text, text, next: text })),
    }),
  ),
  /** What the node has to run. Older agents leave it out, and so does an agent of an older plane. */
  overlay: Type.Optional(
    Type.Object({
      vcluster_revision: Type.Integer(),
      applied: Type.Boolean(),
      detail: orNull(text),
      services: Type.Array(
        Type.Object({
          ...{ name: text, state: text, restarts: Type.Integer(), pid: orNull(Type.Integer()) },
          error: Type.Optional(text),
          output: Type.Optional(Type.Array(text)),
          unapplied: Type.Optional(Type.Array(text)),
        }),
      ),
      drift: Type.Array(text),
      /** Older agents leave it out. */
      checks: Type.Optional(Type.Array(Type.Object({ name: text, state: text, line: text, since: text }))),
    }),
  ),
  /** The helper of this host, and what the node cannot do without it, or without more in agent.toml. */
  helper: Type.Optional(
    Type.Object({
      there: Type.Boolean(),
      lacks: Type.Array(text),
      /** Whether it starts what the vCluster names by a statement of the plane alone. Left out where it starts nothing. */
      overlays: Type.Optional(Type.Enum(['signed', 'unsigned'])),
    }),
  ),
  /** What of tasks is under way here. Left out where there never was any. */
  tasks: Type.Optional(
    Type.Array(Type.Object({ id: text, type: text, state: Type.Enum(['received', 'running', 'ended']), since: text })),
  ),
  /** The programs of this node that have a leaf. Left out where there are none. */
  outputs: Type.Optional(
    Type.Array(
      Type.Object({
        name: text,
        /** The folder that its program reads; null: this host has none for it. */
        place: orNull(text),
        /** Of the leaf that is in place; null: none is. */
        serial: orNull(text),
        not_after: orNull(text),
        renew_at: orNull(text),
        /** When the first of the revocation lists beside it ends. */
        lists_until: orNull(text),
        key_type: text,
        names: Type.Array(text),
        reload: orNull(text),
        failure: orNull(text),
      }),
    ),
  ),
  troubles: Type.Array(StatusTrouble, { maxItems: places.length }),
  outcome: orNull(
    Type.Object({
      kind: text,
      code: orNull(text),
      text: orNull(text),
      next: orNull(text),
      class: Type.Optional(orNull(Type.Enum([...failureClasses]))),
    }),
  ),
})
export type StatusFile = Static<typeof StatusFile>

export const statusPath = (stateFolder: string): string => path.join(stateFolder, 'status.json')

/** Null when there is none, or a damaged one: it is only ever informative. Throws when it may not be read. */
export const readStatusFile = (stateFolder: string): StatusFile | null => {
  const content = readFileIfAny(statusPath(stateFolder))
  if (content === null) return null
  try {
    const value: unknown = JSON.parse(content)
    return matchesSchema(StatusFile, value) ? value : null
  } catch {
    return null
  }
}

/** As `readStatusFile`, with what a read-only disk keeps the agent from writing down: the reader sees it directly. */
export const readStatus = (stateFolder: string): StatusFile | null => {
  const status = readStatusFile(stateFolder)
  if (status === null) return null
  const recorded = status.troubles.find(({ place }) => place === 'storage')
  // It has said so itself, and goes on saying what it does.
  if (recorded !== undefined && status.phase !== 'stopped' && stillRuns(status)) return status
  // Of the other faults the reader would see his own: he may not be the user of the agent.
  if (writeFaultOf(stateFolder) !== 'EROFS') return status
  const facts = { errno: 'EROFS', path: stateFolder, freeBytes: diskSpace(stateFolder)?.availableBytes ?? 0 }
  const what = diskTrouble(facts, 'This is the last status that an agent could write; an agent may run all the same')
  const since = recorded?.since ?? status.written_at
  const seen = { ...what, place: 'storage' as const, since, attempts: recorded?.attempts ?? 1, next_try_at: null }
  return { ...status, troubles: [...status.troubles.filter((other) => other !== recorded), seen] }
}
