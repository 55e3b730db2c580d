// The indexes of the next step on tables that may have millions of rows. They are built before the step, beside commits: in its
// transaction every replica would stand still for as long as that takes. A crash leaves an index that PostgreSQL calls invalid;
// it is dropped and built again.

import { pgTrouble, type PgConnection, type Prepared } from '#platform/postgres.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { createIndex, documentReader, lookupIndexes } from './migrations.ts'

/**
 * Held while indexes are built, and nothing waits for it: building one waits for every transaction that is under way, among them
 * that of a session which waits for a lock.
 */
const buildingLock = 0x4d535452_04

/**
 * May be repeated. `readersWithin`: how long it waits for transactions that have begun before, such as that of pg_dump; the connection
 * has it as its `lock_timeout` afterwards. `busy`: another session is building them.
 */
export const buildIndexes = async (connection: PgConnection, readersWithin: string): Promise<'built' | 'busy'> => {
  const { rows } = await connection.run(tryLock, [buildingLock])
  if (rows[0]?.['taken'] !== true) return 'busy'
  await connection.exec(`SET lock_timeout = '${readersWithin}'`)
  await connection.exec(documentReader)
  for (const index of lookupIndexes) {
    const [found] = (await connection.run(askIndex, [index.table, index.name])).rows
    // A table that a step before makes is still small then.
    if (found?.['table_there'] !== true || found['valid'] === true) continue
    try {
      if (found['valid'] === false) await connection.exec(`DROP INDEX CONCURRENTLY ${index.name}`)
      await connection.exec(createIndex(index, 'INDEX CONCURRENTLY'))
    } catch (error) {
      throw pgTrouble(error) === 'refused' ? error : new StoreFault(`the index ${index.name} could not be built`, error)
    }
  }
  await connection.run(unlock, [buildingLock])
  return 'built'
}

const tryLock: Prepared = { name: 'index-lock', text: 'SELECT pg_try_advisory_lock($1::bigint) AS taken' }

const unlock: Prepared = { name: 'index-unlock', text: 'SELECT pg_advisory_unlock($1::bigint)' }

/** `valid`: null where there is no such index. */
const askIndex: Prepared = {
  name: 'index-look',
  text: `SELECT to_regclass($1) IS NOT NULL AS table_there,
      (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($2)) AS valid`,
}
