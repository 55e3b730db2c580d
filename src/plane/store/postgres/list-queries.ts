// The lists: nodes, tokens, alerts, and the kinds of which there are only a few.

import type { Denial } from '#domain/core/certificate.ts'
import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { membershipKinds, type HardwareIdentity, type Membership, type Node } from '#domain/core/node.ts'
import type { PgRow, PgValue, Prepared } from '#platform/postgres.ts'
import { claimsOf, tableShapes } from '#plane/store/commit/columns.ts'
import { listOfNodes, listStatement } from '#plane/store/commit/list-rows.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { decodeShared } from './older-rows.ts'
import type { PgAccess } from './pg-access.ts'

export type ListQueries = Pick<
  Store,
  | 'nodes'
  | 'countNodes'
  | 'nodesByHardware'
  | 'tokenById'
  | 'tokens'
  | 'denials'
  | 'profiles'
  | 'operatorKeys'
  | 'issuers'
  | 'alerts'
  | 'alertById'
  | 'list'
>

export const openListQueries = (access: Pick<PgAccess, 'read'>): ListQueries => {
  const rows = async <K extends RowKind>(
    query: Query<K>,
    ...values: PgValue[]
  ): Promise<readonly Row<RowTypes[K]>[]> => {
    const found = await access.read(query.statement, values)
    return found.rows.map((row) => decodeShared(query.kind, row))
  }
  const first = async <K extends RowKind>(query: Query<K>, value: PgValue): Promise<Row<RowTypes[K]> | null> =>
    (await rows(query, value))[0] ?? null

  const list: ListQueries['list'] = (kind, query) => {
    const { name, text, values } = listStatement(kind, query, (place) => `$${place}`)
    return rows({ kind, statement: { name, text } }, ...values)
  }

  return {
    list,
    nodes: (query) => list('node', listOfNodes(query)),
    async countNodes() {
      const counts = Object.fromEntries(membershipKinds.map((kind) => [kind, 0])) as Record<Membership['kind'], number>
      const found = await access.read(count)
      for (const row of found.rows) counts[row['membership'] as Membership['kind']] = row['count'] as number
      return counts
    },
    nodesByHardware: async (hardware: HardwareIdentity) => {
      const found = await access.read(byHardware, [claimsOf(hardware)])
      return eachOnce(found.rows)
    },
    tokenById: (id) => first(tokenById, id),
    tokens: ({ node, limit }) => (node === null ? rows(tokens, limit) : rows(tokensOfNode, limit, node)),
    denials: async () => (await rows(denials)).map(({ value }): Denial => value),
    profiles: () => rows(profiles),
    operatorKeys: () => rows(operatorKeys),
    issuers: () => rows(issuers),
    alerts: ({ unresolvedOnly, after, limit }) => rows(unresolvedOnly ? unresolvedAlerts : alerts, after ?? '', limit),
    alertById: (id) => first(alertById, id),
  }
}

/** A node with two of the addresses is found twice. */
const eachOnce = (rows: readonly PgRow[]): readonly Row<Node>[] => [
  ...new Map(rows.map((row) => [row['key'], decodeShared('node', row)])).values(),
]

type Query<K extends RowKind> = { readonly kind: K; readonly statement: Prepared }

const select = <K extends RowKind>(kind: K, name: string, rest: string): Query<K> => ({
  kind,
  statement: { name, text: `SELECT key, version, doc FROM ${tableShapes[kind].table} ${rest}` },
})

const count: Prepared = {
  name: 'count-nodes',
  text: 'SELECT membership, count(*) AS count FROM node GROUP BY membership',
}
/** In the order of the addresses that were asked for. */
const byHardware: Prepared = {
  name: 'nodes-by-hardware',
  text: `SELECT node.key, node.version, node.doc
    FROM unnest($1::text[]) WITH ORDINALITY AS claim (value, place)
    JOIN hardware ON hardware.value = claim.value JOIN node ON node.key = hardware.node ORDER BY claim.place`,
}
const tokenById = select('token', 'token-by-id', 'WHERE id = $1')
const tokens = select('token', 'tokens', 'ORDER BY made DESC LIMIT $1')
const tokensOfNode = select('token', 'tokens-of-node', 'WHERE node = $2 ORDER BY made DESC LIMIT $1')
const denials = select('denial', 'denials', 'ORDER BY key')
const profiles = select('profile', 'profiles', 'ORDER BY key')
const operatorKeys = select('operator-key', 'operator-keys', 'ORDER BY id')
const issuers = select('issuer', 'issuers', 'ORDER BY key')
const alerts = select('alert', 'alerts', 'WHERE id > $1 ORDER BY id LIMIT $2')
const unresolvedAlerts = select('alert', 'unresolved-alerts', 'WHERE unresolved = 1 AND id > $1 ORDER BY id LIMIT $2')
const alertById = select('alert', 'alert-by-id', 'WHERE id = $1')
