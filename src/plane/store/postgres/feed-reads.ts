// What the feed reads: the ends of the chains, their new entries, and the rows that were written.

import type { RowKind, Write } from '#domain/core/change.ts'
import type { Continuity } from '#domain/continuity/continuity.ts'
import { unbroken } from '#domain/core/domain-settings.ts'
import type { PgResult, PgValue, Prepared } from '#platform/postgres.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { ChainRow, Position, ReadCommit } from './chain-reading.ts'
import { decodeShared } from './older-rows.ts'
import type { FoundRow } from './published-rows.ts'

export type Run = (statement: Prepared, values?: readonly PgValue[]) => Promise<PgResult>

export type ChainEnd = {
  readonly chain: string
  /** It begins behind this. */
  readonly base: number
  readonly end: number
  readonly hash: string
  readonly writer: number | null
}

export const chainEnds = async (run: Run): Promise<readonly ChainEnd[]> => {
  const { rows } = await run(chainsStatement)
  return rows.map((row) => {
    const { chain, base, end, hash, writer } = row as Omit<ChainEnd, 'hash'> & { readonly hash: Uint8Array }
    return { chain, base, end, hash: hexOf(hash), writer }
  })
}

/** The first entries of every chain, from its place on, including the entry at that place. */
export const entriesBehind = async (
  run: Run,
  ends: readonly ChainEnd[],
  place: (chain: string) => Position,
  atMost: number,
): Promise<(chain: string) => readonly ChainRow[]> => {
  const chains = ends.map(({ chain }) => chain)
  const first = chains.map((chain) => place(chain).sequence)
  const { rows } = await run(entriesStatement, [chains, first, ends.map(({ end }) => end), atMost])
  const byChain = Map.groupBy(rows as readonly (ChainRow & { readonly chain: string })[], ({ chain }) => chain)
  return (chain) => byChain.get(chain) ?? []
}

/** The rows as they are now; null: it was deleted, or no subscriber keeps such rows. */
export const rowsOf = async (
  run: Run,
  touched: ReadCommit['touched'],
): Promise<(kind: string, key: string) => FoundRow | null> => {
  const found = new Map<string, FoundRow>()
  const kinds = [...Map.groupBy(touched, ([kind]) => kind)].flatMap(([kind, places]) =>
    isKnown(kind) && !neverCached.has(kind) ? [{ kind, keys: [...new Set(places.map(([, key]) => key))] }] : [],
  )
  await Promise.all(
    kinds.map(async ({ kind, keys }) => {
      const { rows } = await run(rowStatements[kind], [keys])
      for (const row of rows) {
        const { version, value } = decodeShared(kind, row)
        const key = row['key'] as string
        found.set(`${kind} ${key}`, { key, version, write: { put: kind, value } as Write })
      }
    }),
  )
  return (kind, key) => found.get(`${kind} ${key}`) ?? null
}

/** As the domain's row has it now; a database without a domain was never confirmed. */
export const continuityOf = async (run: Run): Promise<Continuity> => {
  const found = (await rowsOf(run, [['domain', 'domain']]))('domain', 'domain')
  return found?.write.put === 'domain' ? found.write.value.continuity : unbroken
}

/** Looked up when they are needed, and kept in no memory; a storm writes one of each for every node. */
const neverCached: ReadonlySet<RowKind> = new Set<RowKind>([
  'certificate',
  'token',
  'wireguard-key',
  'key-claim',
  'overlay-address',
  'task',
  'task-line',
  'task-rollout',
  'rollout-nodes',
  'run-tally',
  'plan',
  'claim',
  'purged-node',
  'order',
  'issuer-revocation',
])

/** A newer plane may write kinds of rows that this one does not know. */
const isKnown = (kind: string): kind is RowKind => Object.hasOwn(tableShapes, kind)

const rowStatements = Object.fromEntries(
  Object.entries(tableShapes).map(([kind, { table }]) => [
    kind,
    { name: `feed-rows-${kind}`, text: `SELECT key, version, doc FROM ${table} WHERE key = ANY ($1::text[])` },
  ]),
) as Readonly<Record<RowKind, Prepared>>

const chainsStatement: Prepared = {
  name: 'feed-chains',
  text: 'SELECT chain, base_sequence AS base, sequence AS end, hash, writer FROM chain',
}

const entriesStatement: Prepared = {
  name: 'feed-entries',
  text: `SELECT wanted.chain, entry.sequence, entry.bytes, entry.hash, entry.touched
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS wanted (chain, first, last)
    CROSS JOIN LATERAL (SELECT sequence, bytes, hash, touched FROM journal
      WHERE chain = wanted.chain AND sequence BETWEEN wanted.first AND wanted.last ORDER BY sequence LIMIT $4) AS entry
    ORDER BY wanted.chain, entry.sequence`,
}
