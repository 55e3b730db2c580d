// Are the chains what was written? Chain by chain and a page at a time, so that no journal is too long for it.

import { sameBytes } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import { hexOf, type BaseRow, type ChainPlace, type JournalRow } from '#plane/store/journal/journal-chain.ts'
import type { HeadSigner, JournalHead, Verification } from '#plane/store/contract/store.ts'
import { checkChain, noBase, entriesBehind, type Broken } from '#plane/store/journal/verify-journal.ts'
import type { Dialect, Sql, SqlRow } from './sql.ts'

/** What this process knows of the ends of the chains, beside what the database says. */
export type KnownEnds = {
  /** How far every chain had come, as far as this process has seen by its own commits. */
  known(): ReadonlyMap<string, number>
  /** Where this process left its chain, if it is the only one that writes; null: the row of a chain says where it ends. */
  ownEnd(): ChainPlace | null
}

/** As it stood at one moment; what is written meanwhile is another's to verify. */
type ChainAtStart = {
  readonly base: BaseRow
  /** Where it ends, by its row or by what its only writer knows. */
  readonly sequence: number
  readonly hash: Uint8Array
  /** As the entries say. */
  readonly newest: number
}

type VerifiedChain = {
  readonly broken: Broken | null
  readonly entries: number
  readonly head: readonly JournalHead[]
}

const pageSize = 200

/** The verified heads, without entries that are appended meanwhile. */
export const verifyChains = async (
  clock: Clock,
  sql: Pick<Sql, 'read' | 'dialect'>,
  signer: HeadSigner,
  ends: KnownEnds,
  rest: () => Promise<void>,
): Promise<Verification> => {
  const { everyChain, page } = chainStatements(sql.dialect)
  const known = new Map(ends.known())
  const own = ends.ownEnd()
  const [rows, orphans] = await Promise.all([sql.read(everyChain), sql.read(sql.dialect.chainsWithoutRow)])
  const chains = rows.map((row) => chainAtStart(row, own))
  let entries = 0
  const heads: JournalHead[] = []
  const several = chains.length + orphans.length > 1
  const broken = (chain: string, { from, to, why }: Broken): Verification => ({
    ...{ kind: 'broken', chain, from, to, entries },
    why: several ? `${why} (chain ${chain})` : why,
  })

  const verifyChain = async ({ base, sequence, hash, newest }: ChainAtStart): Promise<VerifiedChain> => {
    let last: JournalRow | null = null
    const pageAfter = async (at: number): Promise<readonly JournalRow[]> => {
      const found = (await sql.read(page, [base.chain, at, pageSize])) as unknown as readonly JournalRow[]
      last = found.find((row) => row.sequence === sequence) ?? last
      return found
    }
    const written = Math.max(sequence, known.get(base.chain) ?? 0)
    const checked = await checkChain(clock, signer, base, written, pageAfter, rest)
    const fault = checked.broken ?? entriesBehind(sequence, newest) ?? altered(last, hash)
    return { entries: checked.entries, broken: fault, head: headAt(base.chain, last) }
  }

  for (const chain of chains) {
    const name = chain.base.chain
    const checked = await verifyChain(chain)
    entries += checked.entries
    if (checked.broken !== null) return broken(name, checked.broken)
    heads.push(...checked.head)
    known.delete(name)
  }
  for (const { chain } of orphans)
    return broken((chain as string | null) ?? own?.chain ?? '', { from: 1, to: 1, why: noBase })
  for (const [chain, sequence] of known)
    return broken(chain, { from: 1, to: sequence, why: 'a whole chain is missing' })
  return { kind: 'intact', entries, heads }
}

const headAt = (chain: string, row: JournalRow | null): readonly JournalHead[] => {
  if (row === null || row.signature === null || row.keyId === null) return []
  const signature = Buffer.from(row.signature).toString('base64url')
  return [{ chain, sequence: row.sequence, hash: hexOf(row.hash), signature, keyId: row.keyId }]
}

/** The row of a chain says where it ends: the next entry is chained to that. */
const altered = (last: JournalRow | null, hash: Uint8Array): Broken | null =>
  last !== null && sameBytes(last.hash, hash)
    ? null
    : { from: last?.sequence ?? 1, to: last?.sequence ?? 1, why: 'the record of where the chain ends was altered' }

const chainAtStart = (row: SqlRow, own: ChainPlace | null): ChainAtStart => {
  const chain = row['chain'] as string
  const end = own?.chain === chain ? own : (row as { readonly sequence: number; readonly hash: Uint8Array })
  return {
    base: {
      chain,
      domain: row['domain'] as string,
      sequence: row['base_sequence'] as number,
      hash: row['base_hash'] as Uint8Array,
      signature: row['base_signature'] as Uint8Array,
      keyId: row['base_key_id'] as string,
    },
    sequence: end.sequence,
    hash: end.hash,
    newest: row['newest'] as number,
  }
}

export const chainStatements = ({ entries }: Dialect) => ({
  everyChain: {
    name: 'journal-chains',
    text: `SELECT chain, domain, base_sequence, base_hash, base_signature, base_key_id, sequence, hash,
        coalesce((SELECT newest.sequence FROM ${entries} AS newest WHERE newest.chain = chain.chain
          ORDER BY newest.sequence DESC LIMIT 1), 0) AS newest
      FROM chain ORDER BY chain`,
  },
  page: {
    name: 'journal-page',
    text: `SELECT sequence, operation, bytes, hash, signature, key_id AS "keyId", node, type FROM ${entries}
      WHERE chain = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`,
  },
})
