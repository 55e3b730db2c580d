// Damage that is met while a plane starts is called damage: a page that SQLite cannot read, a row that is no document any
// more, blocks that PostgreSQL calls corrupted.

import { sqliteTrouble } from '#platform/sqlite.ts'
import { errno } from '#platform/files.ts'
import { storeCorrupt, StoreFault, type StoreRefused } from '#plane/store/contract/store-errors.ts'

/** Null: the error says nothing of that kind. */
export const damageOf = (error: unknown): StoreRefused | null => {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    if (isDamage(cause)) return storeCorrupt('the store', cause)
    if (cause instanceof StoreFault && cause.cause instanceof SyntaxError)
      return storeCorrupt('a row of the store', cause.cause)
  }
  return null
}

/** data_corrupted and index_corrupted. */
const corrupted = ['XX001', 'XX002']

const isDamage = (error: Error): boolean =>
  sqliteTrouble(error) === 'corrupt' ||
  sqliteTrouble(error) === 'not-a-database' ||
  corrupted.includes(errno(error) ?? '')
