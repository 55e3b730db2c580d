// What a plane has on record, as tests ask for it: over its own API, and in its database file behind its back.

import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { CertificateRecord } from '#domain/certificate.ts'
import type { Json } from './operator-call.ts'
import type { NodeTarget } from './node-call.ts'
import type { Plane } from './start-plane.ts'

/** The node plane by address: a storm of calls should not wait for its resolver. */
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

/** Straight from the file: certificates are not all shown by the API. */
export const storedCertificates = (plane: Pick<Plane, 'data'>, node: string): readonly CertificateRecord[] => {
  const database = new DatabaseSync(path.join(plane.data, 'muster.db'), { readOnly: true })
  try {
    const rows = database.prepare('SELECT doc FROM certificate WHERE node = ? ORDER BY rowid').all(node)
    return rows.map(({ doc }) => JSON.parse(String(doc)) as CertificateRecord)
  } finally {
    database.close()
  }
}
