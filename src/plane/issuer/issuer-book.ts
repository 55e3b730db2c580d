// The CA certificates on record, as one value: who signs now, and the way from each up to the root.

import type { Row } from '#domain/change.ts'
import type { IssuerRecord } from '#domain/issuer-record.ts'
import type { IssuerId } from '#domain/node.ts'

export type IssuerBook = {
  readonly rows: readonly Row<IssuerRecord>[]
  /** The newest; nodes are given all of them. */
  readonly root: IssuerRecord
  /** Newest first. */
  readonly roots: readonly IssuerRecord[]
  /** The newest that still serves, or null. */
  readonly domainCa: IssuerRecord | null
  readonly issuing: IssuerRecord | null
  find(id: IssuerId): Row<IssuerRecord> | null
  /** Without the root, from the issuer upwards; DER. An issuer not on record is a bug of the caller. */
  chainOf(id: IssuerId): readonly Uint8Array[]
}

export const bookOf = (rows: readonly Row<IssuerRecord>[]): IssuerBook => {
  const byId = new Map(rows.map((row) => [row.value.id, row]))
  const newestFirst = rows.map((row) => row.value).sort((a, b) => b.notBeforeMs - a.notBeforeMs)
  const serving = (role: IssuerRecord['role']): IssuerRecord[] =>
    newestFirst.filter((record) => record.role === role && record.retiredAtMs === null)
  const roots = serving('root')
  const [root] = roots
  if (root === undefined) throw new Error('there is no root on record: this domain has no certificate authority yet')
  const chains = new Map(newestFirst.map((record) => [record.id, chainFrom(record, byId)]))

  return {
    rows,
    root,
    roots,
    domainCa: serving('domain-ca')[0] ?? null,
    issuing: serving('issuing')[0] ?? null,
    find: (id) => byId.get(id) ?? null,
    chainOf(id) {
      const chain = chains.get(id)
      if (chain === undefined) throw new Error(`issuer ${id} is not on record`)
      return chain
    },
  }
}

const chainFrom = (leafIssuer: IssuerRecord, byId: ReadonlyMap<IssuerId, Row<IssuerRecord>>): Uint8Array[] => {
  const chain: Uint8Array[] = []
  let record = leafIssuer
  while (record.role !== 'root') {
    chain.push(Buffer.from(record.der, 'base64'))
    const parent = byId.get(record.parent)
    // Three levels is the deepest there is; more would be a circle.
    if (parent === undefined || chain.length > 2) throw new Error(`the chain of issuer ${leafIssuer.id} does not end in a root`)
    record = parent.value
  }
  return chain
}
