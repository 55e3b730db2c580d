// What can no longer matter is removed, as the embedded store does it.

import type { Prepared } from '#platform/postgres.ts'
import { endingRows } from '#plane/store/sqlite/forget.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { PgAccess } from './pg-access.ts'

const slice = 500

/** Removes nothing unless this replica leads. */
export const forgetEndedRows = async (
  access: Pick<PgAccess, 'write'>,
  self: ReplicaNumber,
  livedMs: number,
): Promise<number> => {
  let total = 0
  for (const { table, end, before } of endingRows(livedMs)) {
    const statement = removal(table, end)
    for (let removed = slice; removed === slice; total += removed)
      removed = (await access.write(statement, [before, self])).count
  }
  return total
}

/** A row that somebody is about to write is left alone: it may be about to last longer. Nobody takes the lead meanwhile. */
const removal = (table: string, end: string): Prepared => ({
  name: `forget-${table}`,
  text: `DELETE FROM ${table}
    WHERE key IN (SELECT key FROM ${table} WHERE ${end} < $1 LIMIT ${slice} FOR UPDATE SKIP LOCKED)
      AND EXISTS (SELECT FROM leadership JOIN replica ON replica.number = leadership.replica
        WHERE leadership.replica = $2 AND replica.expires_at > clock_timestamp() FOR SHARE OF leadership)`,
})
