// `muster store` as an operator uses it: real planes, real agents, both stores.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { rawNode } from '../process/raw-node.ts'
import { runMuster, type Ran, type RunOptions } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** Whatever store the run of the tests is about: here both have their turn. */
const sqliteEnv = { MUSTER_STORE: 'sqlite' }

const done = async (running: Promise<Ran>): Promise<Ran> => {
  const ran = await running
  assert.equal(ran.code, 0, ran.stderr)
  return ran
}

const store = (env: RunOptions['env'], ...args: string[]): Promise<Ran> =>
  runMuster(['store', ...args], { env: env ?? {} })

const sealKeyIn = (folder: string): string => {
  const file = path.join(folder, 'seal.key')
  fs.writeFileSync(file, `${'5a'.repeat(32)}\n`, { mode: 0o600 })
  return file
}

const joined = async (t: Scope, plane: Plane, id: string) => {
  const agent = startAgent(t, { join: await plane.token('--node', id) })
  await channelOpen(plane, id)
  return agent
}

const channelOpen = (plane: Plane, id: string): Promise<unknown> =>
  eventually(
    `${id} to have its channel`,
    async () => {
      const { body } = await plane.api('GET', `/v1/nodes/${id}`)
      return body.channel_open === true && body.membership === 'active' ? body : null
    },
    { withinMs: 60_000 },
  )

test('a domain moves from SQLite to PostgreSQL and back, and its agents do not notice', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const folder = tempFolder(t)
  const sealKey = sealKeyIn(folder)
  const plane = await startPlane(t, { env: sqliteEnv, args: ['--seal-key', sealKey] })
  const agents = [await joined(t, plane, 'gpu-001'), await joined(t, plane, 'gpu-002')]
  const spent = (await plane.api('POST', '/v1/tokens', { node: 'gpu-003' })).body.secret as string
  const taken = rawNode(await plane.target())
  assert.equal((await taken.enrollByToken(spent)).status, 200)
  const gone = await activeNode(plane, 'gpu-004')
  await done(plane.muster('node', 'revoke', 'gpu-004', '--reason', 'sold'))
  const before = JSON.parse((await done(plane.muster('journal', 'verify', '-o', 'json'))).stdout)
  const epochs = async (of: Plane) =>
    Promise.all(['gpu-001', 'gpu-002'].map(async (id) => (await of.api('GET', `/v1/nodes/${id}`)).body.epoch as number))
  const epochsBefore = await epochs(plane)
  const at = { ...sqliteEnv, MUSTER_DATA: plane.data, MUSTER_SEAL_KEY: sealKey }
  const database = await postgresDatabase(t)
  const there = { ...database.env, MUSTER_STORE: 'postgres', MUSTER_SEAL_KEY: sealKey }
  const copying = ['copy', '--from', plane.data, '--to', 'postgres']

  const running = await store({ ...at, ...there }, ...copying)
  assert.equal(running.code, 75)
  assert.match(
    running.stderr,
    /^error STORE_IN_USE: Nothing was copied\.\ndetail: .*process \d+.*\nnext: Stop that plane first\n$/,
  )
  await plane.stop()
  const manifest = path.join(folder, 'manifest')
  const copied = await done(store({ ...at, ...there }, ...copying, '--manifest', manifest, '-o', 'json'))
  const { heads, sha256 } = JSON.parse(copied.stdout)
  assert.match(copied.stderr, /admin.key stays in the old data folder/)
  const signed = fs.readFileSync(manifest, 'utf8')
  assert.deepEqual([JSON.parse(signed).sha256, JSON.parse(signed).heads], [sha256, heads])
  assert.equal(signed.includes('5a'.repeat(32)), false)
  assert.equal(fs.statSync(manifest).mode & 0o777, 0o600)
  const again = await store({ ...at, ...there }, ...copying)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /^error STORE_NOT_EMPTY: Nothing was copied\./)

  const moved = await plane.restart({ env: there })
  for (const id of ['gpu-001', 'gpu-002']) await channelOpen(moved, id)
  assert.deepEqual(await epochs(moved), epochsBefore)
  assert.ok(agents.every((agent) => agent.running()))
  const verified = JSON.parse((await done(moved.muster('journal', 'verify', '-o', 'json'))).stdout)
  assert.equal(verified.intact, true)
  const entries = (await done(moved.muster('journal', 'export'))).stdout
  for (const { hash } of [...before.heads, ...heads]) assert.ok(entries.includes(`"hash":"${hash}"`), hash)
  assert.deepEqual(
    verified.heads.map((head: { chain: string }) => head.chain),
    heads.map((head: { chain: string }) => head.chain),
  )

  const target = await moved.target()
  const second = await rawNode(target).enrollByToken(spent)
  assert.ok(second.status >= 400 && second.status < 500, JSON.stringify(second.body))
  assert.equal((await gone.confirm()).status >= 400, true)
  assert.equal((await moved.api('GET', '/v1/nodes/gpu-004')).body.membership, 'revoked')
  await activeNode(moved, 'gpu-005')

  const status = JSON.parse((await done(store(there, 'status', '--store', 'postgres', '-o', 'json'))).stdout)
  assert.deepEqual([status.replicas.length, status.replicas[0].leads, status.content.nodes.revoked], [1, true, 1])
  await moved.stop()
  const data = path.join(folder, 'back')
  await done(store(there, 'copy', '--from', 'postgres', '--to', data))
  fs.copyFileSync(path.join(plane.data, 'admin.key'), path.join(data, 'admin.key'))
  const home = await plane.restart({ data, env: { ...sqliteEnv, MUSTER_SEAL_KEY: sealKey } })
  for (const id of ['gpu-001', 'gpu-002']) await channelOpen(home, id)
  assert.match((await done(home.muster('journal', 'verify'))).stdout, /^chain intact/)
})

test('a backup made amid a storm of enrollments becomes a plane that verifies and serves', async (t) => {
  const folder = tempFolder(t)
  const plane = await startPlane(t, { env: sqliteEnv })
  await activeNode(plane, 'before')
  let over = false
  let enrolled = 0
  const storm = Array.from({ length: 8 }, async (_, lane) => {
    for (let at = 0; !over; at++, enrolled++) await activeNode(plane, `storm-${lane}-${at}`)
  })
  await eventually('the storm to have begun', () => (enrolled > 8 ? true : null))
  const begun = enrolled
  const copy = path.join(folder, 'copy')
  const ran = await done(store({ ...sqliteEnv, MUSTER_DATA: plane.data }, 'backup', copy))
  const during = enrolled - begun
  over = true
  await Promise.all(storm)
  assert.ok(during > 0, 'nobody enrolled while it was copied')
  assert.match(ran.stderr, /as secret as the plane itself/)
  assert.equal(fs.statSync(copy).mode & 0o777, 0o700)
  await plane.stop()

  const data = path.join(folder, 'restored')
  await done(store(sqliteEnv, 'restore', copy, '--store', 'sqlite', '--data', data))
  const restored = await startPlane(t, { data, env: sqliteEnv })
  assert.match((await done(restored.muster('journal', 'verify'))).stdout, /^chain intact/)
  assert.equal((await restored.api('GET', '/v1/nodes/before')).body.membership, 'active')
  await activeNode(restored, 'after')
})

test('what is wrong is said before anything is touched', async (t) => {
  const folder = tempFolder(t)
  const plane = await startPlane(t, { env: sqliteEnv })
  await plane.stop()
  const at = { ...sqliteEnv, MUSTER_DATA: plane.data }
  const backup = path.join(folder, 'backup')
  await done(store(at, 'backup', backup))
  const seal = path.join(folder, 'seal.key')
  fs.renameSync(path.join(backup, 'seal.key'), seal)
  const cut = path.join(folder, 'cut')
  fs.cpSync(backup, cut, { recursive: true })
  fs.writeFileSync(path.join(cut, 'manifest.json'), '{}')
  const into = ['--store', 'sqlite', '--data', path.join(folder, 'new')]

  const wrong: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
    [['backup', backup], 2, /FILE_EXISTS/],
    [['backup', path.join(folder, 'no', 'where')], 2, /there is no folder/],
    [['backup', folder], 2, /FILE_EXISTS/],
    [['restore', cut, ...into, '--seal-key', seal], 2, /BACKUP_DAMAGED.*\n.*manifest.json/],
    [['restore', backup, ...into], 2, /SEALING_KEY_MISSING/],
    [['restore', backup, ...into, '--seal-key', seal, '--domain', 'prod.example'], 2, /OTHER_DOMAIN/],
    [['restore', backup, '--store', 'sqlite', '--seal-key', seal], 1, /STORE_NOT_EMPTY/],
    [['restore', backup], 2, /--store/],
    [['restore', path.join(folder, 'nowhere'), ...into], 2, /FILE_UNUSABLE/],
    [['copy', '--from', plane.data], 2, /--to/],
    [
      ['copy', '--from', path.join(folder, 'nowhere'), '--to', path.join(folder, 'new'), '--seal-key', seal],
      3,
      /NO_STORE/,
    ],
    [['copy', '--from', plane.data, '--to', 'postgres://admin:hunter2@db/muster'], 2, /postgres:FILE/],
    [['export', path.join(folder, 'file')], 2, /store export is gone.*\n.*store copy --from/],
    [['import', path.join(folder, 'file'), '--store', 'postgres'], 2, /store import is gone.*\n.*store restore/],
    [['status', '--data', path.join(folder, 'new')], 3, /NO_STORE/],
    [['status', '--store', 'postgres://admin:hunter2@db/muster'], 2, /MUSTER_STORE_FILE/],
    [['backup', path.join(folder, 'copy'), '--store', 'postgres'], 2, /PGHOST/],
  ]
  for (const [args, code, says] of wrong) {
    const ran = await store(at, ...args)
    assert.equal(ran.code, code, `${args.join(' ')}\n${ran.stderr}`)
    assert.match(ran.stderr, says)
    assert.match(ran.stderr, /^next: \S/m)
    assert.equal(ran.stdout, '')
    assert.doesNotMatch(ran.stderr, /hunter2/)
  }
  assert.deepEqual(fs.readdirSync(folder).sort(), ['backup', 'cut', 'seal.key'])
  assert.match(
    (await done(store(at, 'migrate', '--dry-run'))).stdout,
    /^schema \d+ is the newest; there is nothing to do\n$/,
  )
  assert.match((await done(store(at, 'status'))).stdout, /^store +sqlite .*\nschema +\d+, the newest\n/)
})
