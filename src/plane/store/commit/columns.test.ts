import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseSync } from 'node:sqlite'
import { noHardware } from '#domain/core/node.ts'
import { hardwareValues, tableShapes } from './columns.ts'
import { migrate } from '#plane/store/sqlite/migrations.ts'

test('every table has exactly the columns its rows are derived to', () => {
  const database = new DatabaseSync(':memory:')
  migrate(database)
  for (const { table, columns, fixed } of Object.values(tableShapes)) {
    const inSchema = database.prepare('SELECT name FROM pragma_table_info(?)').all(table)
    assert.deepEqual(
      inSchema.map((row) => row['name']),
      ['key', 'version', 'doc', ...Object.keys(columns)],
      table,
    )
    for (const name of fixed) assert(name in columns, `${table}.${name}`)
  }
  database.close()
})

test('a hardware identity has each of its addresses once, and its serial', () => {
  assert.deepEqual(hardwareValues(noHardware), [])
  assert.deepEqual(hardwareValues({ macs: ['02:00:00:00:00:01', '02:00:00:00:00:01'], bmcSerial: 'S' }), [
    'mac:02:00:00:00:00:01',
    'bmc:S',
  ])
})
