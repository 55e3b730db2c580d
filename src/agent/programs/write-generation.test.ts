import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { PlaceIsTaken, type Replaced } from '#platform/file-generations.ts'
import { systemRandom } from '#platform/random.ts'
import type { Generation } from './publisher.ts'
import { removeGeneration, writeGeneration } from './write-generation.ts'

const files = {
  directory: null,
  owner: null,
  group: null,
  key_mode: 0o640,
  combined: true,
  pkcs12: false,
  reload: null,
}

/** Every file of it says which generation it is of. */
const generation = (mark: string): Generation => ({
  output: { name: 'web', key_type: 'p256', lifetime_ms: 1000, usage: 'server', names: [], files },
  keyPem: `key ${mark}\n`,
  chainPem: `chain ${mark}\n`,
  rootsPem: `roots ${mark}\n`,
  lists: [`issuing ${mark}\n`, `root ${mark}\n`],
  authoritiesPem: '',
})

const write = (directory: string, mark: string, passed: () => void = () => {}): Replaced =>
  writeGeneration(directory, generation(mark), null, systemRandom, passed)

/** What a program reads that resolves the link once. */
const read = (directory: string): Record<string, string> => {
  const folder = fs.realpathSync(path.join(directory, 'web'))
  return Object.fromEntries(
    fs
      .readdirSync(folder)
      .sort()
      .map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]),
  )
}

const contentOf = (mark: string): Record<string, string> => ({
  'cert.pem': `chain ${mark}\n`,
  'combined.pem': `key ${mark}\nchain ${mark}\n`,
  'crl-issuing.pem': `issuing ${mark}\n`,
  'crl.pem': `issuing ${mark}\nroot ${mark}\n`,
  'key.pem': `key ${mark}\n`,
  'roots.pem': `roots ${mark}\n`,
})

const generationsIn = (directory: string): string[] =>
  fs.readdirSync(directory).filter((name) => name.startsWith('.muster.web.'))

test('a crash after any step leaves the generation before or the new one, and the next write removes what it left', (t) => {
  const directory = tempFolder(t)
  for (const mark of ['first', 'second', 'third', 'before']) write(directory, mark)
  const crashes = crashesDuring(t, directory, () => write(directory, 'new', snapshotOf(directory)))
  // The folder, six files, the link, the rename, the removal of the oldest generation.
  assert.equal(crashes.length, 10)
  const renamed = 8
  for (const [at, left] of crashes.entries()) {
    assert.deepEqual(read(left), contentOf(at < renamed ? 'before' : 'new'), `after step ${at + 1}`)
    write(left, 'next')
    assert.deepEqual(read(left), contentOf('next'))
    const kept = generationsIn(left).map((name) => fs.readdirSync(path.join(left, name)).length)
    assert.deepEqual(
      kept,
      [6, 6, 6, 6],
      `after step ${at + 1}: the one in place and three before it, all of them whole`,
    )
  }
})

let snapshots: string[] = []
let snapshotsIn = ''

const crashesDuring = (t: TestContext, directory: string, run: () => void): readonly string[] => {
  snapshots = []
  snapshotsIn = tempFolder(t)
  run()
  assert.deepEqual(read(directory), contentOf('new'))
  return snapshots
}

/** A copy of the directory after each step: what a process finds that starts after a crash there. */
const snapshotOf = (directory: string) => (): void => {
  const copy = path.join(snapshotsIn, String(snapshots.length))
  fs.cpSync(directory, copy, { recursive: true, verbatimSymlinks: true })
  snapshots.push(copy)
}

test('a write that fails leaves the generation before, and nothing of the new one', (t) => {
  const directory = tempFolder(t)
  write(directory, 'before')
  for (let at = 2; at <= 8; at++) {
    let step = 0
    const full = (): void => {
      if (++step === at) throw new Error('no space left on device')
    }
    assert.throws(() => write(directory, 'new', full), { message: 'no space left on device' })
    assert.deepEqual(read(directory), contentOf('before'))
    assert.deepEqual(generationsIn(directory), ['.muster.web.1'])
  }
})

test('what holds the key has the mode that was asked for, also under a narrow umask, and the rest can be read by all', (t) => {
  const directory = tempFolder(t)
  const umask = process.umask(0o077)
  try {
    write(directory, 'one')
  } finally {
    process.umask(umask)
  }
  const modeOf = (name: string): string =>
    (fs.statSync(path.join(directory, 'web', name)).mode & 0o7777).toString(8).padStart(4, '0')
  assert.deepEqual(
    ['.', 'key.pem', 'combined.pem', 'cert.pem', 'roots.pem', 'crl.pem', 'crl-issuing.pem'].map(modeOf),
    ['0755', '0640', '0640', '0644', '0644', '0644', '0644'],
  )
})

test('what another program put in the place is never replaced nor removed', (t) => {
  const elsewhere = tempFolder(t)
  fs.writeFileSync(path.join(elsewhere, 'x'), 'x')
  const plant: ((place: string) => void)[] = [
    (place) => fs.writeFileSync(place, 'x'),
    (place) => fs.mkdirSync(place),
    (place) => fs.symlinkSync(elsewhere, place),
    (place) => fs.symlinkSync('.web.1', place),
    (place) => fs.symlinkSync('.muster.web.x', place),
    (place) => fs.symlinkSync('.muster.web.1.link', place),
    (place) => fs.symlinkSync('.muster.web.1/../..', place),
  ]
  for (const [index, planted] of plant.entries()) {
    const directory = path.join(elsewhere, String(index))
    fs.mkdirSync(directory)
    planted(path.join(directory, 'web'))
    assert.throws(() => write(directory, 'new'), PlaceIsTaken)
    removeGeneration(directory, 'web')
    assert.deepEqual(fs.readdirSync(directory), ['web'])
  }
  assert.equal(fs.readFileSync(path.join(elsewhere, 'x'), 'utf8'), 'x')
})

test('a folder that was planted where the next generation goes is passed by, and never followed', (t) => {
  const directory = tempFolder(t)
  const elsewhere = tempFolder(t)
  fs.symlinkSync(elsewhere, path.join(directory, '.muster.web.1'))
  write(directory, 'one')
  assert.equal(fs.readlinkSync(path.join(directory, 'web')), '.muster.web.2')
  assert.deepEqual(fs.readdirSync(elsewhere), [])
})

test('a removed output leaves nothing, and other outputs stay', (t) => {
  const directory = tempFolder(t)
  write(directory, 'one')
  write(directory, 'two')
  fs.symlinkSync('.muster.web.9', path.join(directory, '.muster.web.9.link'))
  fs.mkdirSync(path.join(directory, '.muster.web-2.1'))
  removeGeneration(directory, 'web')
  removeGeneration(directory, 'web')
  removeGeneration(path.join(directory, 'missing'), 'web')
  assert.deepEqual(fs.readdirSync(directory), ['.muster.web-2.1'])
})

test('files of the host are not removed, whatever their names', (t) => {
  const directory = tempFolder(t)
  const elsewhere = tempFolder(t)
  for (const name of ['.web.1', '.web.2.link', '.muster.web.7', '.muster.web.8.link'])
    fs.writeFileSync(path.join(directory, name), 'not ours')
  fs.mkdirSync(path.join(directory, '.web.3'))
  fs.symlinkSync(elsewhere, path.join(directory, '.muster.web.9.link'))
  const foreign = ['.web.1', '.web.2.link', '.web.3', '.muster.web.7', '.muster.web.8.link', '.muster.web.9.link']
  if (process.geteuid?.() === 0) {
    fs.mkdirSync(path.join(directory, '.muster.web.6'))
    fs.chownSync(path.join(directory, '.muster.web.6'), 65534, 65534)
    foreign.push('.muster.web.6')
  }
  for (const mark of ['one', 'two', 'three']) write(directory, mark)
  assert.deepEqual(read(directory), contentOf('three'))
  removeGeneration(directory, 'web')
  assert.deepEqual(fs.readdirSync(directory).sort(), foreign.sort())
})

test('a disk that does not confirm the swap leaves the new generation in place, in doubt, and every one before', (t) => {
  const directory = tempFolder(t)
  assert.equal(write(directory, 'one'), 'durable')
  assert.equal(write(directory, 'two'), 'durable')
  let step = 0
  const failing = (): void => {
    // The folder, six files, the link, the rename.
    if (++step === 9) throw new Error('EIO')
  }
  assert.equal(write(directory, 'three', failing), 'in-doubt')
  assert.deepEqual(read(directory), contentOf('three'))
  assert.equal(generationsIn(directory).length, 3)
  for (const mark of ['three', 'four']) assert.equal(write(directory, mark), 'durable')
  assert.equal(generationsIn(directory).length, 4)
})

test('while the disk confirms nothing a bounded number of generations piles up', (t) => {
  const directory = tempFolder(t)
  write(directory, 'one')
  const counts: number[] = []
  for (let times = 0; times < 40; times++) {
    let step = 0
    const failing = (): void => {
      if (++step === 9) throw new Error('EIO')
    }
    assert.equal(write(directory, String(times), failing), 'in-doubt')
    counts.push(generationsIn(directory).length)
  }
  assert.ok(Math.max(...counts) <= 17, counts.join(' '))
  assert.deepEqual(read(directory), contentOf('39'))
})

test('a generation that somebody may read who may not read the next one does not stay', (t) => {
  const directory = tempFolder(t)
  const writeWith = (mode: number, combined: boolean): void => {
    const { output, ...rest } = generation('x')
    const asked = { ...output, files: { ...files, key_mode: mode, combined } }
    writeGeneration(directory, { ...rest, output: asked }, null, systemRandom)
  }
  writeWith(0o440, true)
  writeWith(0o640, true)
  assert.equal(generationsIn(directory).length, 2, 'more may be read than before')
  writeWith(0o600, true)
  assert.equal(generationsIn(directory).length, 1, 'not by the group any more')
  writeWith(0o600, false)
  assert.equal(generationsIn(directory).length, 1, 'not this file any more')
})

test('the directory may be a descriptor', (t) => {
  const directory = tempFolder(t)
  const fd = fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY)
  t.after(() => fs.closeSync(fd))
  write(`/proc/self/fd/${fd}`, 'one')
  assert.deepEqual(read(directory), contentOf('one'))
  removeGeneration(`/proc/self/fd/${fd}`, 'web')
  assert.deepEqual(fs.readdirSync(directory), [])
})

/** Reads the key and the certificate again and again through one resolved link, and the combined file by its path. */
const reader = `
const fs = require('node:fs')
const { parentPort, workerData: { directory, over } } = require('node:worker_threads')
const flag = new Int32Array(over)
const seen = new Set()
const wrong = []
let replaced = 0
while (Atomics.load(flag, 0) === 0) {
  try {
    const at = fs.realpathSync(directory + '/web')
    const key = fs.readFileSync(at + '/key.pem', 'utf8').trim().slice(4)
    const chain = fs.readFileSync(at + '/cert.pem', 'utf8').trim().slice(6)
    if (key !== chain) wrong.push(key + ' beside ' + chain)
    const [first, second] = fs.readFileSync(directory + '/web/combined.pem', 'utf8').trim().split('\\n')
    if (first.slice(4) !== second.slice(6)) wrong.push(first + ' with ' + second)
    seen.add(key)
  } catch (error) {
    // Four generations later the folder that was resolved is gone: a reader resolves it again.
    if (error.code !== 'ENOENT') wrong.push(String(error))
    replaced++
  }
}
parentPort.postMessage({ seen: seen.size, wrong, replaced })
`

test('beside 200 swaps a reader never sees a key without its certificate', async (t) => {
  const directory = tempFolder(t)
  write(directory, 'first')
  const over = new SharedArrayBuffer(4)
  const worker = new Worker(reader, { eval: true, workerData: { directory, over } })
  const result = once(worker, 'message') as Promise<[{ seen: number; wrong: string[]; replaced: number }]>
  await once(worker, 'online')
  for (let swap = 0; swap < 200; swap++) write(directory, String(swap))
  Atomics.store(new Int32Array(over), 0, 1)
  const [{ seen, wrong }] = await result
  assert.deepEqual(wrong, [])
  assert.ok(seen > 5, `it saw ${seen} generations`)
})
