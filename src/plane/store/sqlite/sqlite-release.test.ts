import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseOldSqlite } from './sqlite-release.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'

test('SQLite before 3.51.3 is refused, that release and later ones are not', () => {
  for (const version of ['3.51.3', '3.51.10', '3.52.0', '3.53.4', '4.0.0']) refuseOldSqlite(version)
  for (const version of ['3.51.2', '3.51', '3.9.9', '2.99.9', 'undefined'])
    assert.throws(
      () => refuseOldSqlite(version),
      (error) => error instanceof StoreRefused && error.code === 'SQLITE_TOO_OLD' && error.message.includes(version),
    )
})
