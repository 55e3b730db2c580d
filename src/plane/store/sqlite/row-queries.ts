// The lists: nodes, tokens, and the kinds of which there are only a few.

import type { Alert } from '#domain/alerts/alert.ts'
import type { Denial } from '#domain/core/certificate.ts'
import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { membershipKinds, type Membership, type Node, type NodeId } from '#domain/core/node.ts'
import type { Token } from '#domain/enrollment/token.ts'
import type { Database, SqlValue, Statement } from '#platform/sqlite.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { listOfNodes, listStatement } from '#plane/store/commit/list-rows.ts'
import { decodeRow } from '#plane/store/commit/row-tables.ts'
import type { AlertQuery, ListQuery, NodeQuery, TokenQuery } from '#plane/store/contract/store.ts'

export type RowQueries = {
  list<K extends RowKind>(kind: K, query: ListQuery): readonly Row<RowTypes[K]>[]
  nodes(query: NodeQuery): readonly Row<Node>[]
  countNodes(): Readonly<Record<Membership['kind'], number>>
  activeNodes(): readonly NodeId[]
  tokenById(id: string): Row<Token> | null
  tokens(query: TokenQuery): readonly Row<Token>[]
  denials(): readonly Denial[]
  alerts(query: AlertQuery): readonly Row<Alert>[]
  alertById(id: string): Row<Alert> | null
  all<K extends 'profile' | 'operator-key' | 'issuer'>(kind: K): readonly Row<RowTypes[K]>[]
}

export const openRowQueries = (database: Database): RowQueries => {
  const select = (kind: RowKind, rest: string): Statement =>
    database.prepare(`SELECT key, version, doc FROM ${tableShapes[kind].table} ${rest}`)
  const lists = new Map<string, Statement>()
  const count = database.prepare('SELECT membership, count(*) AS count FROM node GROUP BY membership')
  const active = database.prepare("SELECT key FROM node WHERE membership = 'active'")
  const tokenById = select('token', 'WHERE id = ?')
  const tokens = select('token', 'ORDER BY rowid DESC LIMIT ?')
  const tokensOfNode = select('token', 'WHERE node = ? ORDER BY rowid DESC LIMIT ?')
  const denials = select('denial', 'ORDER BY key')
  const alerts = select('alert', 'WHERE id > ? ORDER BY id LIMIT ?')
  const unresolvedAlerts = select('alert', 'WHERE unresolved = 1 AND id > ? ORDER BY id LIMIT ?')
  const alertById = select('alert', 'WHERE id = ?')
  const few = {
    profile: select('profile', 'ORDER BY key'),
    'operator-key': select('operator-key', 'ORDER BY id'),
    issuer: select('issuer', 'ORDER BY key'),
  }
  const rows = <K extends RowKind>(kind: K, statement: Statement, ...values: SqlValue[]): readonly Row<RowTypes[K]>[] =>
    statement.all(...values).map((found) => decodeRow(kind, found))

  const list: RowQueries['list'] = (kind, query) => {
    const { name, text, values } = listStatement(kind, query, (place) => `?${place}`)
    const statement = lists.get(name) ?? database.prepare(text)
    lists.set(name, statement)
    return rows(kind, statement, ...values)
  }

  return {
    list,
    nodes: (query) => list('node', listOfNodes(query)),
    countNodes() {
      const counts = Object.fromEntries(membershipKinds.map((kind) => [kind, 0])) as Record<Membership['kind'], number>
      for (const row of count.all()) counts[row['membership'] as Membership['kind']] = row['count'] as number
      return counts
    },
    activeNodes: () => active.all().map((row) => row['key'] as NodeId),
    tokenById(id) {
      const found = tokenById.get(id)
      return found === undefined ? null : decodeRow('token', found)
    },
    tokens: ({ node, limit }) =>
      node === null ? rows('token', tokens, limit) : rows('token', tokensOfNode, node, limit),
    denials: () => rows('denial', denials).map((row) => row.value),
    alerts: ({ unresolvedOnly, after, limit }) =>
      rows('alert', unresolvedOnly ? unresolvedAlerts : alerts, after ?? '', limit),
    alertById(id) {
      const found = alertById.get(id)
      return found === undefined ? null : decodeRow('alert', found)
    },
    all: (kind) => rows(kind, few[kind]),
  }
}
