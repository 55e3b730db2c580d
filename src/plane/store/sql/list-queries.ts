// The lists: nodes, tokens, alerts, and the kinds of which there are only a few.

import assert from 'node:assert/strict'
import type { Denial } from '#domain/core/certificate.ts'
import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { membershipKinds, type Membership, type Node } from '#domain/core/node.ts'
import { queuerKey, taskStates, type TaskState } from '#domain/tasks/task.ts'
import { hardwareValues, tableShapes } from '#plane/store/commit/columns.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { ListQuery, NodeQuery, Store } from '#plane/store/contract/store.ts'
import type { Dialect, Sql, SqlRow, SqlStatement, SqlValue } from './sql.ts'

export type ListQueries = Pick<
  Store,
  | 'nodes'
  | 'countNodes'
  | 'countAssigned'
  | 'countTaskVerifiers'
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
  | 'unexpiredCertificates'
  | 'countQueuedTasks'
  | 'countQueuedOfWorkers'
  | 'countTasksOf'
  | 'countOpenAndFailed'
>

export const openListQueries = (sql: Sql): ListQueries => {
  const statements = statementsIn(sql.dialect)

  const rows = async <K extends RowKind>(
    { kind, statement }: Query<K>,
    ...values: SqlValue[]
  ): Promise<readonly Row<RowTypes[K]>[]> => decoded(sql.dialect, kind, await sql.read(statement, values))
  const first = async <K extends RowKind>(query: Query<K>, value: SqlValue): Promise<Row<RowTypes[K]> | null> =>
    (await rows(query, value))[0] ?? null

  const list: ListQueries['list'] = (kind, query) => {
    const { values, ...statement } = listStatement(sql.dialect, kind, query)
    return rows({ kind, statement }, ...values)
  }

  return {
    list,
    unexpiredCertificates: ({ afterMs, before, limit }) =>
      before === null
        ? rows(unexpired, limit, afterMs)
        : rows(unexpiredBehind, limit, afterMs, before.notAfterMs, before.key),
    nodes: (query) => list('node', listOfNodes(query)),
    async countNodes() {
      const counts = Object.fromEntries(membershipKinds.map((kind) => [kind, 0])) as Record<Membership['kind'], number>
      for (const row of await sql.read(count)) counts[row['membership'] as Membership['kind']] = row['count'] as number
      return counts
    },
    countAssigned: async () =>
      new Map((await sql.read(countByVCluster)).map((row) => [row['vcluster'] as string, row['count'] as number])),
    countTaskVerifiers: async () =>
      new Map((await sql.read(countByVerifiers)).map((row) => [row['number'] as number, row['count'] as number])),
    async nodesByHardware(hardware) {
      const addresses = hardwareValues(hardware)
      if (addresses.length === 0) return []
      const found = await sql.read(statements.byHardware, [addresses])
      return inOrderOf(addresses, found, decoded(sql.dialect, 'node', found))
    },
    tokenById: (id) => first(tokenById, id),
    tokens: ({ node, after = null, limit }) => {
      const { tokens, tokensOfNode, tokensAfter, tokensOfNodeAfter } = statements
      if (after === null) return node === null ? rows(tokens, limit) : rows(tokensOfNode, limit, node)
      return node === null ? rows(tokensAfter, limit, after) : rows(tokensOfNodeAfter, limit, after, node)
    },
    denials: async () => (await rows(denials)).map(({ value }): Denial => value),
    profiles: async () => (await rows(profiles)).filter(({ value }) => value.deletedAtMs === null),
    operatorKeys: () => rows(operatorKeys),
    issuers: () => rows(issuers),
    alerts: ({ unresolvedOnly, after, limit }) => rows(unresolvedOnly ? unresolvedAlerts : alerts, after ?? '', limit),
    alertById: (id) => first(alertById, id),
    async countQueuedTasks() {
      const [found] = await sql.read(countQueued)
      return found?.['count'] as number
    },
    countQueuedOfWorkers: async () =>
      new Map(
        (await sql.read(countQueuedByWorker)).map((row) => [
          (row['queuer'] as string).slice(workerPrefix.length),
          row['count'] as number,
        ]),
      ),
    async countTasksOf(rollout) {
      const counts = noTaskCounts()
      for (const row of await sql.read(countOfRollout, [rollout]))
        counts[row['state'] as TaskState['kind']] = row['count'] as number
      return counts
    },
    async countOpenAndFailed(rollout, mostFailed) {
      const [found] = await sql.read(countOfStep, [rollout, mostFailed])
      return { open: found?.['open'] as number, failed: found?.['failed'] as number }
    },
  }
}

export const noTaskCounts = (): Record<TaskState['kind'], number> =>
  Object.fromEntries(taskStates.map((state) => [state, 0])) as Record<TaskState['kind'], number>

/** A document that cannot be read is a fault of the store, not of the caller. */
const decoded = <K extends RowKind>(
  dialect: Dialect,
  kind: K,
  found: readonly SqlRow[],
): readonly Row<RowTypes[K]>[] => {
  try {
    return found.map((row) => dialect.decode(kind, row))
  } catch (error) {
    throw new StoreFault('the store cannot be read', error)
  }
}

/** In the order of the addresses that were asked for. A node that holds two of them is found twice, and returned once. */
const inOrderOf = (
  addresses: readonly string[],
  found: readonly SqlRow[],
  nodes: readonly Row<Node>[],
): readonly Row<Node>[] => {
  const byAddress = new Map(found.map((row, at) => [row['address'] as string, nodes[at] as Row<Node>]))
  const inOrder = addresses.flatMap((address) => byAddress.get(address) ?? [])
  return [...new Map(inOrder.map((node) => [node.value.id, node])).values()]
}

type Query<K extends RowKind> = { readonly kind: K; readonly statement: SqlStatement }

const select = <K extends RowKind>(kind: K, name: string, rest: string): Query<K> => ({
  kind,
  statement: { name, text: `SELECT key, version, doc FROM ${tableShapes[kind].table} ${rest}` },
})

const count: SqlStatement = {
  name: 'count-nodes',
  text: 'SELECT membership, count(*) AS count FROM node GROUP BY membership',
}
/** From the index alone. */
const countByVCluster: SqlStatement = {
  name: 'count-assigned',
  text: 'SELECT vcluster, count(*) AS count FROM node WHERE vcluster IS NOT NULL GROUP BY vcluster',
}
const countByVerifiers: SqlStatement = {
  name: 'count-task-verifiers',
  text: `SELECT observation.task_verifiers AS number, count(*) AS count FROM observation JOIN node ON node.key = observation.node
    WHERE observation.task_verifiers IS NOT NULL AND node.membership <> 'revoked' GROUP BY observation.task_verifiers`,
}
/** From the index alone. */
const countQueued: SqlStatement = {
  name: 'count-queued-tasks',
  text: "SELECT count(*) AS count FROM task WHERE state = 'queued'",
}
const workerPrefix = queuerKey({ kind: 'worker', id: '' })
/** From the index alone. The bound above is the character behind the colon. */
const countQueuedByWorker: SqlStatement = {
  name: 'count-queued-by-worker',
  text: `SELECT queuer, count(*) AS count FROM task WHERE queuer >= '${workerPrefix}' AND queuer < 'worker;' GROUP BY queuer`,
}
const countOfRollout: SqlStatement = {
  name: 'count-tasks-of-rollout',
  text: 'SELECT state, count(*) AS count FROM task WHERE rollout = $1 GROUP BY state',
}
/** Each by its own range of the index: what has been completed is not looked at. */
const countOfStep: SqlStatement = {
  name: 'count-open-and-failed-of-rollout',
  text: `SELECT (SELECT count(*) FROM task WHERE rollout = $1 AND state IN ('queued', 'dispatched')) AS open,
    (SELECT count(*) FROM (SELECT 1 FROM task WHERE rollout = $1 AND state IN ('failed', 'unknown', 'expired')
      LIMIT $2) AS ended) AS failed`,
}
const tokenById = select('token', 'token-by-id', 'WHERE id = $1')
const denials = select('denial', 'denials', 'ORDER BY key')
const profiles = select('profile', 'profiles', 'ORDER BY key')
const operatorKeys = select('operator-key', 'operator-keys', 'ORDER BY id')
const issuers = select('issuer', 'issuers', 'ORDER BY key')
const alerts = select('alert', 'alerts', 'WHERE id > $1 ORDER BY id LIMIT $2')
const unresolvedAlerts = select('alert', 'unresolved-alerts', 'WHERE unresolved = 1 AND id > $1 ORDER BY id LIMIT $2')
/** Its index is on the end alone: the condition on it says where to begin. */
const unexpired = select(
  'certificate',
  'unexpired-certificates',
  'WHERE not_after_ms > $2 ORDER BY not_after_ms DESC, key DESC LIMIT $1',
)
const unexpiredBehind = select(
  'certificate',
  'unexpired-certificates-behind',
  `WHERE not_after_ms > $2 AND not_after_ms <= $3 AND (not_after_ms < $3 OR key < $4)
    ORDER BY not_after_ms DESC, key DESC LIMIT $1`,
)
const alertById = select('alert', 'alert-by-id', 'WHERE id = $1')

const statementsIn = ({ isAmong, tokenOrder }: Dialect) => ({
  byHardware: {
    name: 'nodes-of-hardware',
    text: `SELECT hardware.value AS address, node.key, node.version, node.doc
      FROM hardware JOIN node ON node.key = hardware.node WHERE ${isAmong('hardware.value', '$1')}`,
  },
  tokens: select('token', 'tokens', `ORDER BY ${tokenOrder} DESC LIMIT $1`),
  tokensOfNode: select('token', 'tokens-of-node', `WHERE node = $2 ORDER BY ${tokenOrder} DESC LIMIT $1`),
  tokensAfter: select(
    'token',
    'tokens-after',
    `WHERE ${tokenOrder} < (SELECT ${tokenOrder} FROM token WHERE id = $2) ORDER BY ${tokenOrder} DESC LIMIT $1`,
  ),
  tokensOfNodeAfter: select(
    'token',
    'tokens-of-node-after',
    `WHERE node = $3 AND ${tokenOrder} < (SELECT ${tokenOrder} FROM token WHERE id = $2)
      ORDER BY ${tokenOrder} DESC LIMIT $1`,
  ),
})

/** A page of rows of one kind. Its name is the same for every query on the same columns: statements are parsed once. */
const listStatement = (
  { inDocument }: Dialect,
  kind: RowKind,
  { where = {}, order, after, limit }: ListQuery,
): SqlStatement & { readonly values: readonly (string | number)[] } => {
  const { table, columns, lookups = {} } = tableShapes[kind]
  const names = Object.keys(where).toSorted()
  const placeOf = (name: string): string => {
    const path = lookups[name]
    assert(path !== undefined || Object.hasOwn(columns, name), `rows of kind ${kind} have no column ${name}`)
    return path === undefined ? name : inDocument(path)
  }
  const sorted = order === undefined ? 'key' : placeOf(order)
  const conditions = [`${sorted} > $1`, ...names.map((name, index) => `${placeOf(name)} = $${index + 3}`)]
  return {
    // Kinds have dashes: those of kind `worker` by `issuer` are not all of kind `worker-issuer`.
    name: ['list', kind, ...names, ...(order === undefined ? [] : ['by', order])].join('/'),
    text: `SELECT key, version, doc FROM ${table} WHERE ${conditions.join(' AND ')} ORDER BY ${sorted} LIMIT $2`,
    values: [after ?? '', limit, ...names.map((name) => where[name] as string | number)],
  }
}

const listOfNodes = ({ membership, profile, vcluster = null, after, limit }: NodeQuery): ListQuery => ({
  where: {
    ...(membership === null ? {} : { membership }),
    ...(profile === null ? {} : { profile }),
    ...(vcluster === null ? {} : { vcluster }),
  },
  after,
  limit,
})
