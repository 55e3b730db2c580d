// L4: the disk of the database is full. A cut-off is in force at the replica that was asked, the answer says that and no
// more, and the plane commits it by itself once it can.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { cluster } from '../fakes/service-accounts.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { operatorCall, type Reply } from '../process/operator-call.ts'
import { journalEntries, newSecret, targetByAddress } from '../process/plane-records.ts'
import { serverOwner, startPostgres, type PostgresServer } from '../process/postgres-server.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { enrolledWorker, type RawWorker } from '../process/raw-worker.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs, type Tmpfs } from '../process/tmpfs.ts'

/** A database whose tables lie on a small disk, while the write-ahead log of the server does not. */
const smallDatabase = async (t: TestContext, server: PostgresServer) => {
  const folder = tempFolder(t)
  fs.chmodSync(folder, 0o755)
  const disk = mountTmpfs(t, path.join(folder, 'disk'), 48 << 20)
  const tables = path.join(disk.folder, 'tables')
  fs.mkdirSync(tables, { mode: 0o700 })
  const { uid = 0, gid = 0 } = serverOwner()
  fs.chownSync(tables, uid, gid)
  const [database, other] = [await server.database(t), await server.database(t)]
  const connection = await other.connect()
  await connection.exec(`CREATE TABLESPACE small LOCATION '${tables}'`)
  await connection.exec(`ALTER DATABASE ${database.name} SET TABLESPACE small`)
  return { disk, database }
}

/** Until nothing fits into the pages that are there. */
const fillUp = async (plane: Plane, disk: Tmpfs): Promise<void> => {
  disk.fill(0)
  for (let at = 0; at < 400; at++) {
    const { status, body } = await plane.api('POST', '/v1/tokens', { node: `filler-${at}` })
    if (status === 201) continue
    assert.deepEqual([status, body.code], [503, 'DISK_TROUBLE'], JSON.stringify(body))
    return
  }
  assert.fail('the disk never filled')
}

const enrolled = async (plane: Plane, id: string): Promise<RawNode> => {
  const node = rawNode(await targetByAddress(plane))
  assert.equal((await node.enrollByToken(await newSecret(plane, id))).status, 200)
  assert.equal((await node.confirm()).status, 200)
  return node
}

const workerOf = async (plane: Plane): Promise<RawWorker> => {
  const east = cluster()
  const { iss, aud, sub } = east
  const rights = { types: ['collect-diagnostics'], vclusters: ['blue'] }
  const added = await plane.api('POST', '/v1/worker-issuers', {
    name: 'east',
    iss,
    aud,
    sub,
    jwks: east.jwks(),
    ...rights,
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  return enrolledWorker(await targetByAddress(plane), east)
}

const membership = async (plane: Plane, id: string): Promise<string> =>
  (await plane.api('GET', `/v1/nodes/${id}`)).body.membership

test('L4: on a full disk of the database a revoked node is out at the replica that was asked, which says so, and everywhere once there is room', async (t) => {
  if (withPeer(t, 'tmpfs') === null || withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const { disk, database } = await smallDatabase(t, server)
  const [asked, unaware] = await startReplicaPlanes(t, 2, database.env)
  assert.ok(asked && unaware)
  const [stolen, odd, honest] = [
    await enrolled(asked, 'stolen'),
    await enrolled(asked, 'odd'),
    await enrolled(asked, 'honest'),
  ]
  const channel = await stolen.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  const worker = await workerOf(asked)
  const queue = () => worker.call('POST', '/v1/worker-tasks', { node: 'honest', type: 'collect-diagnostics' })
  assert.equal(
    (await queue()).body.code,
    'NODE_NOT_FOUND',
    'the worker is known, and the node is in none of its vClusters',
  )
  await fillUp(asked, disk)

  const said = await asked.muster('node', 'revoke', 'stolen', '--reason', 'stolen')
  assert.equal(said.code, 9, said.stderr)
  assert.match(said.stderr, /error CUT_OFF_PENDING: This is in force at this replica only/)
  assert.match(said.stderr, new RegExp(`not known to .*${unaware.pid}`))
  const revoked = await asked.api('POST', '/v1/nodes/stolen/revoke', { reason: 'stolen' })
  assert.deepEqual(
    [revoked.status, revoked.body.code, revoked.body.in_force_here, revoked.body.kept_in],
    [503, 'CUT_OFF_PENDING', true, 'data folder'],
  )
  assert.equal(revoked.body.replicas_unaware.length, 1)
  assert.ok(Number(revoked.headers['retry-after']) > 0)
  for (const [where, body] of [
    ['/v1/nodes/odd/quarantine', { reason: 'odd' }],
    ['/v1/issuance/halt', { reason: 'until it is known how' }],
  ] as const) {
    const reply: Reply = await asked.api('POST', where, body)
    assert.deepEqual([reply.status, reply.body.in_force_here], [503, true], JSON.stringify(reply.body))
  }
  const ofWorker: Reply = await asked.api('POST', `/v1/workers/${worker.id()}/revoke`, { reason: 'stolen' })
  assert.deepEqual([ofWorker.status, ofWorker.body.in_force_here], [503, true], JSON.stringify(ofWorker.body))
  assert.deepEqual([(await queue()).status, (await queue()).body.code], [403, 'WORKER_REVOKED'])
  assert.equal(channel.ended(), true)
  assert.equal((await stolen.confirm()).status, 403)
  assert.equal((await odd.confirm()).status, 403)
  assert.equal((await stolen.renew()).reply.status, 403)
  assert.equal((await honest.confirm()).status, 200)
  assert.equal(await membership(unaware, 'stolen'), 'active', 'the other replica knows nothing of it')
  assert.deepEqual((await asked.api('GET', '/v1/receipts')).body.receipts, [], 'a receipt of what is not committed')
  const { body: readiness } = await asked.api('GET', '/readyz')
  assert.match(readiness.warnings.join('\n'), /the revocation of stolen is in force at this replica only/)

  await asked.kill9()
  disk.free()
  const again = await asked.restart()
  assert.equal((await stolen.confirm()).status, 403)
  await eventually('the worker to be revoked everywhere', async () => {
    const { body } = await unaware.api('GET', `/v1/workers/${worker.id()}`)
    return body.revoked?.reason === 'stolen'
  })
  for (const [id, kind] of [
    ['stolen', 'revoked'],
    ['odd', 'quarantined'],
  ] as const)
    await eventually(`${id} to be ${kind}`, async () => (await membership(unaware, id)) === kind, {
      withinMs: 20_000,
      everyMs: 100,
    })
  await eventually('the halt', async () => (await unaware.api('GET', '/v1/issuance')).body.state === 'halted')
  const [entry] = await journalEntries(again, { node: 'stolen', type: 'host.revoked' })
  assert.match(entry?.actor, /^operator:|admin/, JSON.stringify(entry))
  await eventually('no warning to be left', async () => {
    const warnings: string[] = (await again.api('GET', '/readyz')).body.warnings
    return !warnings.some((warning) => /in force at this replica only/.test(warning))
  })
  const alerts = await journalEntries(again, { type: 'alert.raised' })
  assert.ok(
    alerts.some(({ body }) => body.kind === 'cut_off_delayed'),
    JSON.stringify(alerts),
  )
  const standing = (await again.api('GET', '/v1/alerts')).body.alerts
  assert.ok(
    standing.some(({ kind }: { kind: string }) => kind === 'cut_off_delayed'),
    'until it is acknowledged',
  )
  assert.deepEqual(fs.readdirSync(path.join(again.data, 'cut-offs')), [])
})

const long = process.env['MUSTER_LONG'] === '1'

test('L4: without any database an operator known to the plane cuts a node off there, and no other order works; back, it is committed', async (t) => {
  if (!long) return
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const database = await server.database(t)
  const [plane] = await startReplicaPlanes(t, 1, database.env)
  assert.ok(plane)
  const stolen = await enrolled(plane, 'stolen')
  const issuing = (await plane.api('GET', '/v1/ca')).body.authorities.find(
    ({ role, signing }: { role: string; signing: boolean }) => role === 'issuing' && signing,
  )
  const { body: viewer } = await plane.api('POST', '/v1/keys', { name: 'unseen', role: 'platform-admin' })
  const channel = await stolen.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await server.stop('crash')

  const revoked = await plane.api('POST', '/v1/nodes/stolen/revoke', { reason: 'stolen' })
  assert.deepEqual(
    [revoked.status, revoked.body.code, revoked.body.in_force_here, revoked.body.replicas_unaware],
    [503, 'CUT_OFF_PENDING', true, []],
    JSON.stringify(revoked.body),
  )
  assert.equal(channel.ended(), true)
  const withdrawn = await plane.api('POST', '/v1/ca/withdraw', { issuer: issuing.id, reason: 'its key is out' })
  assert.equal(withdrawn.body.in_force_here, true, JSON.stringify(withdrawn.body))
  // It has never been seen here, so nobody can tell whose it is.
  const unseen = await operatorCall(plane.socket, viewer.secret, 'POST', '/v1/nodes/stolen/revoke', { reason: 'x' })
  assert.deepEqual([unseen.status, unseen.body.in_force_here], [503, undefined], JSON.stringify(unseen.body))
  const drained = await plane.api('POST', '/v1/nodes/stolen/drain', {})
  assert.deepEqual([drained.status, drained.body.in_force_here], [503, undefined])

  await server.start()
  await eventually('the revocation', async () => (await membership(plane, 'stolen')) === 'revoked', {
    withinMs: 60_000,
    everyMs: 200,
  })
  await eventually(
    'the withdrawal',
    async () =>
      (await plane.api('GET', '/v1/ca')).body.authorities.some(
        ({ id, withdrawn_at: at }: { id: string; withdrawn_at?: string }) => id === issuing.id && at !== undefined,
      ),
    { withinMs: 30_000, everyMs: 200 },
  )
  assert.equal((await stolen.confirm()).status, 403)
})
