// How the journal is read: of every chain a run of entries. All of them are read in one turn, and so at one moment.

import type { FoundEntry, FoundRuns, JournalFilter, JournalRuns } from '#plane/store/sql/journal-reader.ts'
import type { Sql, SqlStatement } from '#plane/store/sql/sql.ts'

export const openSqliteJournalRuns = (sql: Pick<Sql, 'read'>): JournalRuns => {
  const readRuns = async (
    filter: JournalFilter,
    order: 'ASC' | 'DESC',
    behind: (chain: string) => number,
    limit: number,
  ): Promise<FoundRuns> => {
    const chains = (await sql.read(everyChain)).map((row) => row['chain'] as string)
    const runs = chains.flatMap((chain) =>
      eachType(filter).map(async ({ node, type }) => {
        const values = [chain, behind(chain), limit, ...[node, type].filter((value) => value !== null)]
        const rows = await sql.read(runStatement(order, node !== null, type !== null), values)
        return rows.map((row) => ({ ...(row as Omit<FoundEntry, 'chain'>), chain }))
      }),
    )
    return { entries: (await Promise.all(runs)).flat(), chains: new Set(chains) }
  }
  return {
    after: (filter, places, limit) => readRuns(filter, 'ASC', (chain) => places.get(chain) ?? 0, limit),
    last: (filter, count) => readRuns(filter, 'DESC', () => 0, count),
  }
}

/** The indexes have the entries of one type in order. */
const eachType = ({ node, types }: JournalFilter) => (types ?? [null]).map((type) => ({ node, type }))

/** One statement for each combination of filters: a condition that may be switched off keeps SQLite from its indexes. */
const runStatement = (order: 'ASC' | 'DESC', byNode: boolean, byType: boolean): SqlStatement => {
  const conditions = [
    ...(byNode ? ['node = $4'] : []),
    // The plus keeps SQLite from the index by type, where it would walk past the entries of every other node.
    ...(byType ? [byNode ? '+type = $5' : 'type = $4'] : []),
  ]
  return {
    name: ['journal-run', order, ...conditions].join(' '),
    text: `SELECT sequence, operation, bytes, hash FROM every_entry
      WHERE ${['chain = $1', 'sequence > $2', ...conditions].join(' AND ')} ORDER BY sequence ${order} LIMIT $3`,
  }
}

const everyChain: SqlStatement = { name: 'journal-chain-names', text: 'SELECT chain FROM chain ORDER BY chain' }
