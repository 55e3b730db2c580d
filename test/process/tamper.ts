// An attacker with write access to the database changes rows behind the planes' backs. Statements are written for both stores.

import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Json } from './operator-call.ts'
import { databaseOf } from './store-under-test.ts'

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

export type Tampering = {
  /** Returns rows where the statement has any. */
  sql(statement: string): Promise<readonly Json[]>
  /** The document of a row, changed. */
  edit(table: string, key: string, change: (doc: Json) => Json): Promise<void>
  insert(table: string, key: string, doc: Json, columns?: Readonly<Record<string, string>>): Promise<void>
}

export const tamperWith = (data: string): Tampering => {
  let statements = 0
  const sql: Tampering['sql'] = async (statement) => {
    const shared = await databaseOf(data)
    if (shared === null) return inFile(data, statement)
    const connection = await shared.connect()
    try {
      return (await connection.run({ name: `tamper-${statements++}`, text: statement })).rows
    } finally {
      await connection.end()
    }
  }
  return {
    sql,
    async edit(table, key, change) {
      const [row] = await sql(`SELECT doc FROM ${table} WHERE key = ${literal(key)}`)
      const doc = JSON.stringify(change(JSON.parse(row.doc)))
      await sql(`UPDATE ${table} SET doc = ${literal(doc)} WHERE key = ${literal(key)}`)
    },
    async insert(table, key, doc, columns = {}) {
      const names = ['key', 'version', 'doc', ...Object.keys(columns)].join(', ')
      const values = [literal(key), '1', literal(JSON.stringify(doc)), ...Object.values(columns).map(literal)]
      await sql(`INSERT INTO ${table} (${names}) VALUES (${values.join(', ')})`)
    },
  }
}

const inFile = (data: string, statement: string): readonly Json[] => {
  const database = new DatabaseSync(path.join(data, 'muster.db'), { timeout: 5000 })
  try {
    return database.prepare(statement).all()
  } finally {
    database.close()
  }
}
