// The entries of a group, chained and signed, and the row of their chain that says so.

import type { PgConnection, PgValue, Prepared } from '#platform/postgres.ts'
import { extendChain, headSignature, type PlacedEntry, type Tail } from '#plane/store/journal/chain-tail.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import { cursorAt } from '#plane/store/journal/journal-cursor.ts'
import type { CommitPlan } from '#plane/store/commit/plan-commit.ts'
import type { HeadSigner, StoredEntry } from '#plane/store/contract/store.ts'
import type { OwnChain } from './chain-writer.ts'
import type { FoundChain } from './lock-rows.ts'
import type { Counted } from './write-rows.ts'

export type PlacedCommit = { readonly placed: readonly PlacedEntry[]; readonly touched: string }

export type Placed = { readonly commits: readonly PlacedCommit[]; readonly tail: Tail }

export const placeEntries = (
  chain: OwnChain,
  plans: readonly CommitPlan[],
  domain: string,
  newCommitId: () => string,
): Placed => {
  let { tail } = chain
  const commits = plans.map((plan) => {
    const extended = extendChain(tail, plan.entries, { domain, commit: newCommitId() })
    tail = extended.tail
    const touched = [...plan.writes.map(({ row }) => row), ...plan.removes].map(({ kind, key }) => [kind, key])
    return { placed: extended.placed, touched: JSON.stringify(touched) }
  })
  return { commits, tail }
}

/** A cursor has the other chains as they were seen by this commit. */
export const storedEntries = ({ placed }: PlacedCommit, chains: readonly FoundChain[]): readonly StoredEntry[] => {
  const places = new Map(chains.map(({ chain, sequence }) => [chain, sequence]))
  return placed.map(({ entry, bytes, hash }) => {
    places.set(entry.chain, entry.sequence)
    return { cursor: cursorAt(places), entry, bytes, hash: hexOf(hash) }
  })
}

export const writeEntries = (
  connection: PgConnection,
  signer: HeadSigner,
  chain: OwnChain,
  { commits, tail }: Placed,
): readonly Counted[] => {
  const rows = commits.flatMap(({ placed, touched }) =>
    placed.map((each, index) => ({ ...each, touched: index === 0 ? touched : null })),
  )
  const { place } = tail
  const values: readonly PgValue[] = [
    place.chain,
    rows.map(({ entry }) => entry.sequence),
    rows.map(({ entry }) => entry.operation),
    rows.map(({ bytes }) => bytes),
    rows.map(({ hash }) => hash),
    rows.map(({ entry }) => entry.node),
    rows.map(({ entry }) => entry.type),
    rows.map(({ touched }) => touched),
    place.sequence,
    headSignature(signer, tail),
    signer.keyId,
  ]
  return [
    { what: 'entries', expected: rows.length, answer: connection.run(insertEntries, values) },
    { what: 'the chain', expected: 1, answer: moveChain(connection, chain, tail) },
  ]
}

const moveChain = (connection: PgConnection, { row, base, writer }: OwnChain, { place }: Tail) => {
  const { chain, sequence, hash } = place
  if (row !== null) return connection.run(advance, [chain, row.writer, row.sequence, writer, sequence, hash, row.hash])
  if (base === null) throw new Error('a chain without a row and without a beginning')
  const { domain, signature, keyId } = base
  return connection.run(insertChain, [
    chain,
    domain,
    base.sequence,
    base.hash,
    signature,
    keyId,
    sequence,
    hash,
    writer,
  ])
}

const insertEntries: Prepared = {
  name: 'group-insert-entries',
  text: `INSERT INTO journal (chain, sequence, operation, bytes, hash, node, type, touched, signature, key_id)
    SELECT $1, sequence, operation, bytes, hash, node, type, touched,
      CASE WHEN sequence = $9 THEN $10::bytea END, CASE WHEN sequence = $9 THEN $11::text END
    FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::text[])
      AS fresh (sequence, operation, bytes, hash, node, type, touched)`,
}

const leased = (number: string): string =>
  `EXISTS (SELECT FROM replica WHERE replica.number = ${number} AND expires_at > clock_timestamp())`

/** By its writer alone, from where it left it, and under its lease to the last. */
const advance: Prepared = {
  name: 'group-advance-chain',
  text: `UPDATE chain SET writer = $4, sequence = $5, hash = $6
    WHERE chain = $1 AND writer IS NOT DISTINCT FROM $2 AND sequence = $3 AND hash = $7
      AND ${leased('$4')}`,
}

const insertChain: Prepared = {
  name: 'group-insert-chain',
  text: `INSERT INTO chain (chain, domain, base_sequence, base_hash, base_signature, base_key_id, sequence, hash, writer)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE ${leased('$9')}`,
}
