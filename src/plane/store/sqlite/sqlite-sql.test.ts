import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Insertion } from '#plane/store/sql/sql.ts'
import { openSqliteSql } from './sqlite-sql.ts'

const setUp = (refuseWrite: () => void = () => {}) => {
  const database = new DatabaseSync(':memory:')
  database.exec('CREATE TABLE thing (name TEXT PRIMARY KEY, size INTEGER) STRICT')
  return { database, sql: openSqliteSql(database, refuseWrite) }
}

const things = (...rows: readonly (readonly [string, number])[]): Insertion => ({
  name: 'things',
  into: 'thing',
  columns: [
    { name: 'name', type: 'text' },
    { name: 'size', type: 'bigint' },
  ],
  onConflict: 'ON CONFLICT (name) DO UPDATE SET size = excluded.size',
  rows,
})
const all = { name: 'all', text: 'SELECT name, size FROM thing ORDER BY rowid' }

test('values are bound by their numbers, in whatever order a statement names them', async () => {
  const { sql } = setUp()
  await sql.insert([things(['a', 1], ['b', 2])])
  const bySize = { name: 'by-size', text: 'SELECT name FROM thing WHERE size > $2 AND name > $1' }
  assert.deepEqual(
    (await sql.read(bySize, ['a', 0])).map((row) => row['name']),
    ['b'],
  )
})

test('a list is one value, and an empty one matches nothing', async () => {
  const { sql } = setUp()
  await sql.insert([things(['a', 1], ['b', 2], ['c', 3])])
  const among = {
    name: 'among',
    text: `SELECT name FROM thing WHERE ${sql.dialect.isAmong('name', '$1')} ORDER BY name`,
  }
  const found = async (...names: string[]) => (await sql.read(among, [names])).map((row) => row['name'])
  assert.deepEqual([await found('c', 'a', 'x'), await found()], [['a', 'c'], []])
})

test('rows are inserted in their order, and all of them or none', async () => {
  const { sql } = setUp()
  await sql.insert([things(['b', 1], ['a', 1], ['b', 2])])
  assert.deepEqual(
    (await sql.read(all)).map((row) => ({ ...row })),
    [
      { name: 'b', size: 2 },
      { name: 'a', size: 1 },
    ],
  )
  await assert.rejects(sql.insert([things(['c', 1]), things(['d', 'no number' as never])]), StoreFault)
  assert.equal((await sql.read(all)).length, 2)
})

test('a write counts the rows it has changed, and a statement of the leader is always one of this process', async () => {
  const { sql } = setUp()
  await sql.insert([things(['a', 1], ['b', 2])])
  const grow = { name: 'grow', text: 'UPDATE thing SET size = size + $1' }
  assert.equal(await sql.write(grow, [1]), 2)
  const shrink = { name: 'shrink', text: (ifLeader: string) => `DELETE FROM thing WHERE size > $1 AND ${ifLeader}` }
  assert.equal(await sql.writeAsLeader(shrink, [2]), 1)
})

test('nothing is written while that is refused, and everything inside a transaction that is open already', async () => {
  const refusal = new StoreFault('nothing was written', 'the disk is full')
  const { sql: refusing } = setUp(() => {
    throw refusal
  })
  await assert.rejects(refusing.insert([things(['a', 1])]), refusal)
  assert.deepEqual(await refusing.read(all), [])
  const { sql, database } = setUp()
  database.exec('BEGIN')
  await sql.insert([things(['a', 1])])
  database.exec('ROLLBACK')
  assert.deepEqual(await sql.read(all), [])
})
