// Where in the journal a time is. Entries of a chain are in the order of their writing, and their times are those of the clock of the
// plane that wrote them: a clock that was set back moves the place found by as much.

import type { Cursor } from '#plane/store/contract/store.ts'
import { cursorAt } from '#plane/store/journal/journal-cursor.ts'
import type { Sql, SqlStatement } from './sql.ts'

/** Behind the last entry of each chain that is older; null: there is none. A few dozen reads, whatever the length. */
export const placeBefore = async (sql: Pick<Sql, 'read' | 'dialect'>, atMs: number): Promise<Cursor | null> => {
  const { ends, entryAt } = statementsIn(sql)
  const places = new Map<string, number>()
  for (const row of await sql.read(ends)) {
    const chain = row['chain'] as string
    const isOlder = async (sequence: number): Promise<boolean> => {
      const [found] = await sql.read(entryAt, [chain, sequence])
      if (found === undefined) return false
      const { atMs: writtenMs } = JSON.parse(found['bytes'] as string) as { readonly atMs?: unknown }
      return typeof writtenMs === 'number' && writtenMs < atMs
    }
    let [older, newest] = [row['base_sequence'] as number, (row['newest'] as number | null) ?? 0]
    while (older < newest) {
      const middle = Math.ceil((older + newest) / 2)
      if (await isOlder(middle)) older = middle
      else newest = middle - 1
    }
    if (older > 0) places.set(chain, older)
  }
  return places.size === 0 ? null : cursorAt(places)
}

const statementsIn = ({ dialect: { entries } }: Pick<Sql, 'dialect'>): Record<'ends' | 'entryAt', SqlStatement> => ({
  ends: {
    name: 'journal-ends',
    text: `SELECT chain.chain, chain.base_sequence, (SELECT sequence FROM ${entries} AS entry WHERE entry.chain = chain.chain
      ORDER BY sequence DESC LIMIT 1) AS newest FROM chain ORDER BY chain.chain`,
  },
  entryAt: { name: 'journal-entry-at', text: `SELECT bytes FROM ${entries} WHERE chain = $1 AND sequence = $2` },
})
