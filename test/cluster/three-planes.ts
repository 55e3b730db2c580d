// Three real planes over one real PostgreSQL, and what its tables say of them behind their backs.

import assert from 'node:assert/strict'
import type { PgRow, PgConnection, PgValue } from '#platform/postgres.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually, type Patience } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { startRoundRobin, type RoundRobin } from '../process/round-robin.ts'
import { postgresDatabase, type TestDatabase } from '../process/postgres-server.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import type { Plane, PlaneOptions } from '../process/start-plane.ts'
import type { ReplicaDoor } from './enrollment-load.ts'

export type ThreePlanes = {
  readonly doors: readonly [ReplicaDoor, ReplicaDoor, ReplicaDoor]
  readonly tables: Tables
}

/** The database itself, asked without a plane. */
export type Tables = {
  /** Another connection, for a transaction of the test's own. */
  connect(): Promise<PgConnection>
  rows(text: string, values?: readonly PgValue[]): Promise<readonly PgRow[]>
  /** Of those with a lease. */
  replicas(): Promise<readonly LeasedReplica[]>
}

export type LeasedReplica = { readonly number: number; readonly pid: number; readonly leads: boolean }

/** What refusals would otherwise use up, in tests that are about refusals. */
const unlimited = { strangersPerMinute: 1e6, strangersPerMinutePerSource: 1e6 }

export type ThreePlanesOptions = {
  readonly planes?: PlaneOptions | ((number: number) => PlaneOptions)
  /** Of the domain. */
  readonly set?: object
  readonly database?: TestDatabase
  /** Where a plane listens for nodes; left out: on 127.0.0.1. */
  readonly hostOf?: (number: number) => string
}

/** They all serve, and one of them leads. */
export const startThreePlanes = async (t: Scope, options: ThreePlanesOptions = {}): Promise<ThreePlanes> => {
  const database = options.database ?? (await postgresDatabase(t, 'migrated'))
  const planes = await startReplicaPlanes(t, 3, database.env, options.planes)
  const doors = await Promise.all(
    planes.map(async (plane, at) => {
      const { roots } = await plane.target()
      const host = options.hostOf?.(at + 1) ?? '127.0.0.1'
      return { plane, target: { url: `https://${host}:${plane.nodePort}`, roots } }
    }),
  )
  const [first, second, third] = doors
  if (first === undefined || second === undefined || third === undefined) throw new Error('three planes were asked for')
  const set = await first.plane.api('PATCH', '/v1/domain', { set: { ...unlimited, ...options.set } })
  assert.equal(set.status, 200, JSON.stringify(set.body))
  const tables = await tablesOf(database)
  await eventually('one of them to lead', async () => (await tables.replicas()).some(({ leads }) => leads))
  return { doors: [first, second, third], tables }
}

/** Three planes, and the load balancer whose address agents call. */
export type PlanesBehindOne = ThreePlanes & { readonly balancer: RoundRobin }

/** For agents: all three are one address, as behind a load balancer, on two ports. */
export const startPlanesBehindOne = async (t: Scope, options: ThreePlanesOptions = {}): Promise<PlanesBehindOne> => {
  const front = '127.0.0.10'
  const hostOf = (number: number): string => `127.0.0.${10 + number}`
  const [nodes, recovery] = [await freePort(), await freePort()]
  const names = [front, hostOf(1), hostOf(2), hostOf(3)].flatMap((name) => ['--server-name', name])
  const three = await startThreePlanes(t, {
    ...options,
    hostOf,
    planes: (number) => ({
      nodeListen: `${hostOf(number)}:${nodes}`,
      recoveryListen: `${hostOf(number)}:${recovery}`,
      args: names,
    }),
  })
  const behind = (port: number) => [1, 2, 3].map((number) => ({ host: hostOf(number), port }))
  const balancer = await startRoundRobin(t, { host: front, port: nodes }, behind(nodes))
  await startRoundRobin(t, { host: front, port: recovery }, behind(recovery))
  return { ...three, balancer }
}

const tablesOf = async (database: TestDatabase): Promise<Tables> => {
  const connection = await database.connect()
  const rows: Tables['rows'] = async (text, values = []) => (await connection.run({ name: '', text }, values)).rows
  return {
    connect: () => database.connect(),
    rows,
    async replicas() {
      const found = await rows(`SELECT number, name, number = (SELECT replica FROM leadership) AS leads FROM replica
        WHERE expires_at > clock_timestamp() ORDER BY number`)
      return found.map(({ number, name, leads }) => ({
        number: number as number,
        // It calls itself by its host and process.
        pid: Number(String(name).split(' ').at(-1)),
        leads: leads === true,
      }))
    },
  }
}

export const leaderOf = async (tables: Tables): Promise<LeasedReplica | null> =>
  (await tables.replicas()).find(({ leads }) => leads) ?? null

/** The door of the plane that leads, and the other two. */
export const byLeadership = async ({
  doors,
  tables,
}: ThreePlanes): Promise<{ leader: ReplicaDoor; others: readonly [ReplicaDoor, ReplicaDoor] }> => {
  const pid = (await leaderOf(tables))?.pid
  const leader = doors.find(({ plane }) => plane.pid === pid)
  const [one, other] = doors.filter(({ plane }) => plane.pid !== pid)
  if (leader === undefined || one === undefined || other === undefined) throw new Error(`process ${pid} leads`)
  return { leader, others: [one, other] }
}

export const untilReady = (plane: Plane, patience: Patience = { withinMs: 30_000, everyMs: 100 }): Promise<true> =>
  eventually(
    'the plane to serve again',
    async () => {
      const { status, body } = await plane.api('GET', '/readyz')
      // Its reasons are what a failure of the wait is explained by.
      assert.equal(status, 200, JSON.stringify(body))
      return true
    },
    patience,
  )

/** Nodes that were made inactive, as often as that happened. */
export const lapsed = async ({ rows }: Tables): Promise<readonly string[]> =>
  (await rows("SELECT node FROM journal WHERE type = 'node.lapsed' ORDER BY node")).map(({ node }) => String(node))

export const waitMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
