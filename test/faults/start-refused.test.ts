// L5, L9 and "Besides" 6 to 8: what a plane says about keys that are gone, damage, and a plane that runs already; and that a
// first start that fails leaves nothing behind. Exit codes are those the command ends with for the same error.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as net from 'node:net'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import { examineFolder } from '#plane/foundation/data-folder.ts'
import { connectPostgres } from '#platform/postgres.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { contentOf, copiesOfDomain } from '../process/made-domain.ts'
import { startPlaneHere, type PlaneHere } from '../process/plane-in-process.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const domain = copiesOfDomain()

/** The code and the exit code of a start that is refused; it has changed no file. */
const refusalOf = async (
  data: string,
  start: () => Promise<PlaneHere> = () => startPlaneHere(data),
): Promise<string> => {
  const before = contentOf(data)
  const failure = await start().then(
    async (plane) => {
      await plane.stop()
      return assert.fail('the plane has started')
    },
    (error: unknown) => planeTrouble(error) as { code: string; exit?: number; message: string; next: string | null },
  )
  assert.deepEqual(contentOf(data), before)
  assert.ok(failure.exit !== undefined, failure.message)
  assert.ok((failure.next ?? '').length > 0)
  return `${failure.code} ${failure.exit}`
}

const keysOf = (data: string, role: string): string[] =>
  fs
    .readdirSync(path.join(data, 'keys'))
    // The public half of the journal's key is no key.
    .filter((name) => (role === 'journal' ? name === 'journal.key' : name.startsWith(`${role}.`)))
    .map((name) => path.join(data, 'keys', name))

const nobody = 65534

const takeAway = (files: readonly string[]): (() => void) => {
  const kept = files.map((file) => [file, fs.readFileSync(file)] as const)
  for (const file of files) fs.rmSync(file)
  return () => kept.forEach(([file, bytes]) => fs.writeFileSync(file, bytes, { mode: 0o600 }))
}

const warningsOf = async (plane: PlaneHere): Promise<string> =>
  JSON.stringify((await plane.api('GET', '/readyz')).body.warnings ?? [])

test('L5: a plane whose issuing, journal, statement or bearer key is gone does not start, and makes none', async (t) => {
  const data = await domain(t)
  for (const role of ['issuing', 'journal', 'statement', 'bearer']) {
    const putBack = takeAway(keysOf(data, role))
    assert.equal(await refusalOf(data), 'KEY_MISSING 78', role)
    assert.deepEqual(keysOf(data, role), [])
    putBack()
  }
  const putBack = takeAway([...keysOf(data, 'recovery'), ...keysOf(data, 'recovery-server')])
  assert.equal(await refusalOf(data), 'KEY_MISSING 78')
  putBack()
  const plane = await startPlaneHere(data)
  assert.equal(await warningsOf(plane), '[]')
  await plane.stop()
})

test('L5: a root or recovery root whose key is gone is a critical alert and a warning, and none is made', async (t) => {
  const data = await domain(t)
  for (const role of ['root', 'recovery']) {
    const putBack = takeAway(keysOf(data, role))
    const plane = await startPlaneHere(data)
    const said = new RegExp(`key of the ${role === 'root' ? 'root' : 'recovery root'} .* gone`)
    assert.match(await warningsOf(plane), said)
    assert.match(JSON.stringify((await plane.api('GET', '/v1/ca')).body.warnings), said)
    const alerts = await eventually('the alert', async () => {
      const { body } = await plane.api('GET', '/v1/alerts')
      return body.alerts.find(({ kind }: { kind: string }) => kind === 'authority_key_lost') ?? null
    })
    assert.equal(alerts.severity, 'critical')
    await plane.stop()
    assert.deepEqual(keysOf(data, role), [])
    putBack()
  }
})

test('L5: an offline root is no loss; below it a lost issuing key leaves a plane that the ceremony can repair', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const plane = await startPlaneHere(data, { rootOut: path.join(tempFolder(t), 'usb') })
  assert.equal(await warningsOf(plane), '[]')
  await plane.stop()
  const putBack = takeAway(keysOf(data, 'issuing'))
  const without = await startPlaneHere(data)
  assert.match(await warningsOf(without), /key of the issuing CA .* gone: .* muster ca request/)
  assert.match((await without.api('POST', '/v1/ca/request')).body.csr, /BEGIN CERTIFICATE REQUEST/)
  await without.stop()
  takeAway(keysOf(data, 'server'))
  assert.equal(await refusalOf(data), 'KEY_MISSING 78')
  putBack()
  const whole = await startPlaneHere(data)
  assert.equal(await warningsOf(whole), '[]')
  await whole.stop()
})

test('L9: damage is called damage, with exit code 78, and nothing is changed', async (t) => {
  const data = await domain(t)
  const file = path.join(data, 'muster.db')
  const whole = fs.readFileSync(file)
  const trying = async (bytes: Buffer): Promise<string> => {
    fs.writeFileSync(file, bytes)
    return refusalOf(data)
  }
  assert.equal(
    await trying(Buffer.from('this is no database, but it is longer than nothing'.repeat(50))),
    'NOT_A_STORE 78',
  )
  const torn = Buffer.from(whole)
  // From the second page on: the header is whole, the tables are not.
  torn.fill(0xff, 4096, 4096 * 12)
  assert.equal(await trying(torn), 'STORE_CORRUPT 78')
  await assert.rejects(startPlaneHere(data), (error: Error) => !/[\n\r]/.test(error.message))
  fs.writeFileSync(file, whole)
  const database = new DatabaseSync(file)
  database.exec("PRAGMA journal_mode = DELETE; UPDATE issuer SET doc = substr(doc, 1, 40) WHERE doc LIKE '%recovery%'")
  database.close()
  assert.equal(await refusalOf(data), 'STORE_CORRUPT 78')
  fs.writeFileSync(file, whole)
  for (const role of ['issuing', 'server', 'journal']) {
    const [key = ''] = keysOf(data, role)
    const sealed = fs.readFileSync(key)
    const flipped = Buffer.from(sealed)
    flipped[flipped.length - 60] = (flipped[flipped.length - 60] ?? 0) ^ 1
    fs.writeFileSync(key, flipped)
    assert.equal(await refusalOf(data), 'KEY_DAMAGED 78', role)
    fs.writeFileSync(key, sealed)
  }
})

test('L9: a database that cannot be opened or written now is not called damaged', async (t) => {
  const data = await domain(t)
  const file = path.join(data, 'muster.db')
  fs.renameSync(file, `${file}.whole`)
  fs.mkdirSync(file)
  fs.writeFileSync(path.join(file, 'x'), 'x')
  assert.equal(await refusalOf(data), 'DISK_TROUBLE 75')
  fs.rmSync(file, { recursive: true })
  fs.renameSync(`${file}.whole`, file)
  if (process.getuid?.() !== 0) return
  for (const name of ['.', ...(fs.readdirSync(data, { recursive: true }) as string[])])
    fs.lchownSync(path.join(data, name), nobody, nobody)
  fs.chmodSync(path.dirname(data), 0o755)
  fs.chownSync(file, 0, 0)
  process.seteuid?.(nobody)
  try {
    // Past the check that the folder is this user's, which asks for the real user.
    assert.throws(
      () => examineFolder(data),
      (error) => (planeTrouble(error) as { code?: string }).code === 'NOT_PERMITTED',
    )
  } finally {
    process.seteuid?.(0)
  }
})

test('L9: on a full disk a plane starts without the index of its log', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 16 << 20)
  const data = path.join(disk.folder, 'd')
  const running = await startPlaneHere(path.join(disk.folder, 'running'))
  // As kill -9 leaves it, and without the file that a copy of a folder has no use for.
  fs.cpSync(running.ready.dataFolder, data, {
    recursive: true,
    filter: (from) => !/\/run$|-shm$|plane\.(pid|lock)$/.test(from),
  })
  await running.stop()
  fs.rmSync(running.ready.dataFolder, { recursive: true })
  assert.ok(fs.statSync(path.join(data, 'muster.db-wal')).size > 0)
  fs.writeFileSync(path.join(data, 'plane.lock'), '')
  disk.fill(0)
  const plane = await startPlaneHere(data)
  assert.equal(plane.ready.rootFingerprint, running.ready.rootFingerprint)
  assert.match(await warningsOf(plane), /reserve of the store/)
  await plane.stop()
})

test('Besides 6: with plane.lock deleted under a running plane, a second one does not touch the store', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const plane = await startPlaneHere(data)
  try {
    fs.rmSync(path.join(data, 'plane.lock'))
    const failure = await startPlaneHere(data).catch(planeTrouble)
    assert.equal((failure as { code?: string }).code, 'DATA_FOLDER_IN_USE')
    assert.ok(!fs.existsSync(path.join(data, 'plane.lock')))
  } finally {
    await plane.stop()
  }
})

test('Besides 7 and 8: a missing sealing key is not made anew, and one that others can read is refused', async (t) => {
  const data = await domain(t)
  const file = path.join(data, 'seal.key')
  const putBack = takeAway([file])
  assert.equal(await refusalOf(data), 'SEALING_KEY_REFUSED 78')
  assert.ok(!fs.existsSync(file))
  putBack()
  for (const mode of [0o644, 0o640]) {
    fs.chmodSync(file, mode)
    assert.equal(await refusalOf(data), 'SEALING_KEY_EXPOSED 78')
  }
  fs.chmodSync(file, 0o600)
  await (await startPlaneHere(data)).stop()
})

test('L1: a first start that fails leaves the folder as it was, and the next one is the first again', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const holder = net.createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  t.after(() => holder.close())
  const { port } = holder.address() as net.AddressInfo
  const taken = () => startPlaneHere(data, { operatorListen: `127.0.0.1:${port}` })
  assert.equal(await refusalOf(data, taken), 'ADDRESS_IN_USE 78')
  assert.ok(!fs.existsSync(data))
  // Two listeners of one plane on one port, under names that only the system knows to be the same.
  const twice = () => startPlaneHere(data, { nodeListen: '127.0.0.1:28443', recoveryListen: '127.1:28443' })
  assert.equal(await refusalOf(data, twice), 'ADDRESS_IN_USE 78')
  assert.ok(!fs.existsSync(data))
  const usb = tempFolder(t)
  fs.writeFileSync(path.join(usb, 'root.key'), 'the root of another domain')
  await assert.rejects(startPlaneHere(data, { rootOut: usb }), /is there already/)
  assert.ok(!fs.existsSync(data), fs.existsSync(data) ? fs.readdirSync(data).join() : '')
  const plane = await startPlaneHere(data)
  assert.equal(plane.ready.firstRun, true)
  await plane.stop()
})

test('L1: PostgreSQL without a domain beside the folder of one is refused; an empty folder is a new replica', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const [first, second] = [await postgresDatabase(t), await postgresDatabase(t)]
  const [data, replica] = [path.join(tempFolder(t), 'd'), path.join(tempFolder(t), 'r')]
  const on = (folder: string, { env }: typeof first, adminKey?: string) =>
    startPlaneHere(folder, { store: 'postgres', sealKey: path.join(data, 'seal.key') }, adminKey, env)
  const made = await startPlaneHere(data, { store: 'postgres' }, undefined, first.env)
  await made.stop()
  assert.equal(await refusalOf(data, () => on(data, second)), 'DATA_FOLDER_INCOMPLETE 78')
  const joined = await on(replica, first, 'none')
  assert.equal(joined.ready.rootFingerprint, made.ready.rootFingerprint)
  assert.equal(joined.ready.firstRun, false)
  await joined.stop()
  const other = path.join(tempFolder(t), 'o')
  await (await on(other, second)).stop()
  const replicas = async (): Promise<unknown> => {
    const connection = await connectPostgres(second.target, { applicationName: 'muster test', connectWithinMs: 5000 })
    const { rows } = await connection.run({
      name: 'leases',
      text: 'SELECT max(replica.number) AS newest, max(leadership.number) AS led FROM replica FULL JOIN leadership ON false',
    })
    await connection.end()
    return rows
  }
  const before = await replicas()
  assert.equal(await refusalOf(data, () => on(data, second)), 'DATA_FOLDER_MIXED 78')
  assert.deepEqual(await replicas(), before, 'it has taken a lease, or has led')
  // The folder of a plane on PostgreSQL, started without it.
  await assert.rejects(startPlaneHere(data, {}, 'none'), {
    code: 'DATA_FOLDER_INCOMPLETE',
    next: /^If .*--store postgres/,
  })
})
