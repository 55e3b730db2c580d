// Are the chains what was written? Chain by chain and a page at a time, so that no journal is too long for it.

import { sameBytes } from '#platform/bytes.ts'
import type { BaseRow, JournalRow } from '#plane/store/journal/journal-table.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { JournalHead, Verification } from '#plane/store/contract/store.ts'
import { checkChain, noBase, strangers, type Broken, type CheckDeps } from '#plane/store/journal/verify-journal.ts'
import { chainsWithoutRow, everyChain, page } from './journal-statements.ts'
import type { PgAccess } from './pg-access.ts'

export type VerifyChainsDeps = CheckDeps & {
  readonly access: Pick<PgAccess, 'read'>
  /** How far every chain had come, as far as this replica has seen by its own commits. */
  known(): ReadonlyMap<string, number>
}

/** As it stood at one moment; what is written meanwhile is another's to verify. */
type ChainAtStart = {
  readonly base: BaseRow
  /** As its row says. */
  readonly sequence: number
  readonly hash: Uint8Array
  /** As the entries say. */
  readonly newest: number
}

const pageSize = 200

/** The heads are those that were verified, whatever is appended meanwhile. */
export const verifyChains = async (deps: VerifyChainsDeps): Promise<Verification> => {
  const known = new Map(deps.known())
  const [rows, orphans] = await Promise.all([deps.access.read(everyChain), deps.access.read(chainsWithoutRow)])
  const chains = rows.rows.map(chainAtStart)
  let entries = 0
  const heads: JournalHead[] = []
  const several = chains.length + orphans.rows.length > 1
  const broken = (chain: string, { from, to, why }: Broken): Verification => ({
    ...{ kind: 'broken', chain, from, to, entries },
    why: several ? `${why} (chain ${chain})` : why,
  })

  for (const chain of chains) {
    const name = chain.base.chain
    const checked = await verifyChain(deps, chain, known.get(name) ?? 0)
    entries += checked.entries
    if (checked.broken !== null) return broken(name, checked.broken)
    heads.push(...checked.head)
    known.delete(name)
  }
  for (const { chain } of orphans.rows as readonly { chain: string }[])
    return broken(chain, { from: 1, to: 1, why: noBase })
  for (const [chain, sequence] of known)
    return broken(chain, { from: 1, to: sequence, why: 'a whole chain is missing' })
  return { kind: 'intact', entries, heads }
}

const verifyChain = async (
  deps: VerifyChainsDeps,
  { base, sequence, hash, newest }: ChainAtStart,
  known: number,
): Promise<{ readonly broken: Broken | null; readonly entries: number; readonly head: readonly JournalHead[] }> => {
  let last: JournalRow | null = null
  const checked = await checkChain(deps, base, Math.max(sequence, known), async (at) => {
    const rows = (await deps.access.read(page, [base.chain, at, pageSize])).rows as unknown as readonly JournalRow[]
    last = rows.find((row) => row.sequence === sequence) ?? last
    return rows
  })
  const broken = checked.broken ?? strangers(sequence, newest) ?? altered(last, hash)
  return { entries: checked.entries, broken, head: headAt(base.chain, last) }
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

const chainAtStart = (row: Readonly<Record<string, unknown>>): ChainAtStart => ({
  base: {
    chain: row['chain'] as string,
    domain: row['domain'] as string,
    sequence: row['base_sequence'] as number,
    hash: row['base_hash'] as Uint8Array,
    signature: row['base_signature'] as Uint8Array,
    keyId: row['base_key_id'] as string,
  },
  sequence: row['sequence'] as number,
  hash: row['hash'] as Uint8Array,
  newest: row['newest'] as number,
})
