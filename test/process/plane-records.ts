// What a plane has in the store, as tests ask for it: over its own API, and in its database behind its back.

import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { connectPostgres } from '#platform/postgres.ts'
import type { Json } from './operator-call.ts'
import type { NodeTarget } from './node-call.ts'
import type { TestDatabase } from './postgres-server.ts'
import type { Plane } from './start-plane.ts'
import { databaseOf } from './store-under-test.ts'

/** The node listener by address: a storm of calls should not wait for its resolver. */
export const targetByAddress = async (plane: Plane, port = plane.nodePort): Promise<NodeTarget> => ({
  ...(await plane.target()),
  url: `https://127.0.0.1:${port}`,
})

/** The secret of a new token for a node; quicker than a run of the CLI. */
export const newSecret = async (plane: Pick<Plane, 'api'>, node: string): Promise<string> => {
  const { status, body } = await plane.api('POST', '/v1/tokens', { node })
  if (status >= 300) throw new Error(`no token for ${node}: ${JSON.stringify(body)}`)
  return body.secret
}

/** Every entry, or every one of a node or type, oldest first. */
export const journalEntries = async (
  plane: Pick<Plane, 'api'>,
  query: { readonly node?: string; readonly type?: string } = {},
): Promise<readonly Json[]> => {
  const found: Json[] = []
  for (let after: string | null = null; ;) {
    const asked: URLSearchParams = new URLSearchParams({ ...query, limit: '1000', ...(after !== null && { after }) })
    const { status, body } = await plane.api('GET', `/v1/journal?${asked.toString()}`)
    if (status !== 200) throw new Error(`the journal does not answer: ${JSON.stringify(body)}`)
    found.push(...body.entries.map(({ entry }: Json) => entry))
    if (body.entries.length < 1000) return found
    after = body.next
  }
}

/** Straight from the database, in the order they were issued in: certificates are not all shown by the API. */
export const storedCertificates = async (
  { data }: Pick<Plane, 'data'>,
  node: string,
): Promise<readonly CertificateRow[]> => {
  const shared = databaseOf(data)
  const docs = shared === null ? docsInFile(data, node) : await docsInDatabase(await shared, node)
  return docs
    .map((doc) => JSON.parse(doc) as CertificateRow)
    .toSorted((one, other) => one.issuedAtMs - other.issuedAtMs)
}

const docsInFile = (data: string, node: string): readonly string[] => {
  const database = new DatabaseSync(path.join(data, 'muster.db'), { readOnly: true })
  try {
    const rows = database.prepare('SELECT doc FROM certificate WHERE node = ? ORDER BY rowid').all(node)
    return rows.map(({ doc }) => String(doc))
  } finally {
    database.close()
  }
}

const docsInDatabase = async ({ target }: TestDatabase, node: string): Promise<readonly string[]> => {
  const connection = await connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 5000 })
  const { rows } = await connection.run({ name: 'docs', text: 'SELECT doc FROM certificate WHERE node = $1' }, [node])
  await connection.end()
  return rows.map(({ doc }) => String(doc))
}
