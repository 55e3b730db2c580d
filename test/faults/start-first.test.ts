// L1: a first start that is cut off. Whatever it has left, the next start finishes it or starts over; and a domain that was
// started over is still served at the start after that.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import * as net from 'node:net'
import * as path from 'node:path'
import { syncBuiltinESMExports } from 'node:module'
import { test, type TestContext } from 'node:test'
import { planeTrouble } from '#cli/plane/plane-trouble.ts'
import { withPeer } from '../peers/peer.ts'
import { startPlaneHere } from '../process/plane-in-process.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'

const all = process.env['MUSTER_LONG'] === '1'

/** Calls `after` behind every change of a file's name in this process, until it returns. */
const watchingFiles = async (after: (name: string) => void, run: () => Promise<void>): Promise<void> => {
  const real = { renameSync: fs.renameSync, linkSync: fs.linkSync, rmSync: fs.rmSync }
  let isInside = false
  const seen = (to: fs.PathLike): void => {
    if (isInside) return
    isInside = true
    try {
      after(path.basename(String(to)))
    } finally {
      isInside = false
    }
  }
  fs.renameSync = (from, to) => (real.renameSync(from, to), seen(to))
  fs.linkSync = (from, to) => (real.linkSync(from, to), seen(to))
  fs.rmSync = (name, options) => (real.rmSync(name, options), seen(name))
  syncBuiltinESMExports()
  try {
    await run()
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
}

const namesIn = (folder: string): string[] => fs.readdirSync(folder).sort()

/** The files as kill -9 would leave them behind each step of a first start: one folder for each set of files. */
const stagesOf = async (t: TestContext): Promise<{ readonly name: string; readonly folder: string }[]> => {
  const [data, kept] = [path.join(tempFolder(t), 'd'), tempFolder(t)]
  const stages = new Map<string, { name: string; folder: string }>()
  const keep = (name: string): void => {
    if (!fs.existsSync(data)) return
    const files = (fs.readdirSync(data, { recursive: true }) as string[]).sort().join()
    if (stages.has(files)) return
    const folder = path.join(kept, String(stages.size))
    const filter = (from: string): boolean => path.relative(data, from).split(path.sep)[0] !== 'run'
    fs.cpSync(data, folder, { recursive: true, filter })
    stages.set(files, { name: `${stages.size} (${name})`, folder })
  }
  let isReady = false
  await watchingFiles(
    (name) => {
      if (!isReady) keep(name)
    },
    async () => {
      const plane = await startPlaneHere(data)
      isReady = true
      await plane.stop()
    },
  )
  return [...stages.values()]
}

/** What nobody could make again: the sealed keys, and the key of the first operator. */
const secretsIn = (folder: string): string[] =>
  (fs.readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => name.endsWith('.key') && fs.lstatSync(path.join(folder, name)).isFile())
    .map((name) => fs.readFileSync(path.join(folder, name), 'utf8'))

const startTwice = async (data: string): Promise<void> => {
  const first = await startPlaneHere(data)
  const { rootFingerprint } = first.ready
  assert.equal((await first.api('GET', '/v1/ca')).status, 200, 'admin.key is not of this domain')
  await first.stop()
  assert.ok(!fs.existsSync(path.join(data, 'first-start')))
  const again = await startPlaneHere(data)
  assert.equal(again.ready.rootFingerprint, rootFingerprint)
  assert.equal(again.ready.firstRun, false)
  assert.deepEqual((await again.api('GET', '/readyz')).body.warnings ?? [], [])
  await again.stop()
}

test('L1: a first start killed at any step is finished or started over by the next one, also without its muster.db, and no key is lost', async (t) => {
  const stages = await stagesOf(t)
  const isUnfinished = ({ folder }: { readonly folder: string }) => namesIn(folder).includes('first-start')
  const withDomain = stages.filter((one) => isUnfinished(one) && namesIn(one.folder).includes('plane.domain'))
  const withAdmin = stages.filter(({ folder }) => namesIn(folder).includes('admin.key'))
  const [last, notAnnounced] = [stages.length - 1, withDomain.at(-1)]
  assert.ok(last > 10 && notAnnounced !== undefined && withAdmin[0] !== undefined, `${stages.length} stages`)
  const tried = all ? stages : [stages[0], stages[Math.floor(last / 3)], withAdmin[0], notAnnounced]
  for (const stage of tried) {
    for (const removed of ['nothing', 'muster.db'] as const) {
      if (stage === undefined || (removed === 'muster.db' && !isUnfinished(stage))) continue
      const data = path.join(tempFolder(t), 'd')
      fs.cpSync(stage.folder, data, { recursive: true })
      if (removed === 'muster.db') fs.rmSync(path.join(data, 'muster.db'), { force: true })
      await startTwice(data).catch((error: unknown) => {
        const { code, next } = planeTrouble(error) as { readonly code?: string; readonly next?: string }
        throw new Error(`stage ${stage.name} without ${removed}: ${code} ${next}: ${String(error)}`, { cause: error })
      })
      const kept = secretsIn(data)
      const lost = secretsIn(stage.folder).filter((secret) => !kept.includes(secret))
      assert.equal(lost.length, 0, `stage ${stage.name} without ${removed}: a start has destroyed keys`)
    }
  }
})

test('L1: a first start whose port is taken after it was tried leaves a whole domain, which the next one announces', async (t) => {
  const data = path.join(tempFolder(t), 'd')
  const [reserved, thief] = [net.createServer(), net.createServer()]
  await new Promise<void>((resolve) => reserved.listen(0, '127.0.0.1', resolve))
  const { port } = reserved.address() as net.AddressInfo
  await new Promise((resolve) => reserved.close(resolve))
  t.after(() => thief.close())
  const steal = (name: string): void => {
    if (name === 'admin.key' && !thief.listening) thief.listen(port, '127.0.0.1')
  }
  const start = () => startPlaneHere(data, { operatorListen: `127.0.0.1:${port}` })
  await watchingFiles(steal, () => assert.rejects(start(), { code: 'EADDRINUSE' }))
  assert.ok(thief.listening)
  const made = secretsIn(data)
  const plane = await startPlaneHere(data)
  assert.equal(plane.ready.firstRun, true)
  assert.equal((await plane.api('GET', '/v1/ca')).status, 200)
  assert.ok(made.every((secret) => secretsIn(data).includes(secret)))
  await plane.stop()
})

test('L1: a plane whose first start was cut off does not announce the domain that another plane has made since', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { env } = await postgresDatabase(t)
  const [a, b] = [path.join(tempFolder(t), 'a'), path.join(tempFolder(t), 'b')]
  const on = (folder: string, adminKey?: string) =>
    startPlaneHere(folder, { store: 'postgres', sealKey: path.join(a, 'seal.key') }, adminKey, env)
  const cut = (name: string): void => {
    if (name === 'admin.key') throw new Error('cut off')
  }
  await watchingFiles(cut, () => assert.rejects(startPlaneHere(a, { store: 'postgres' }, undefined, env), /cut off/))
  assert.ok(fs.existsSync(path.join(a, 'first-start')) && fs.existsSync(path.join(a, 'admin.key')))
  const made = await on(b)
  assert.equal(made.ready.firstRun, true)
  const again = await on(a, fs.readFileSync(path.join(b, 'admin.key'), 'utf8').trim())
  assert.equal(again.ready.rootFingerprint, made.ready.rootFingerprint)
  assert.deepEqual([again.ready.firstRun, again.ready.adminKeyHere], [false, false])
  assert.ok(!fs.existsSync(path.join(a, 'first-start')))
  const [aside = ''] = namesIn(path.join(a, 'set-aside'))
  assert.deepEqual(namesIn(path.join(a, 'set-aside', aside)), ['admin.key'])
  await again.stop()
  await made.stop()
})
