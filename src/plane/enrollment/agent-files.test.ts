import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { eventually } from '../../../test/process/eventually.ts'
import { putAgent, sha256Of } from '../../../test/process/fetch-agent.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { openAgentFiles } from './agent-files.ts'

const setUp = async (t: TestContext) => {
  const folder = path.join(tempFolder(t), 'agents')
  const first = putAgent(folder, 'muster-linux-x64.gz', Buffer.from('one'))
  const files = openAgentFiles([path.join(folder, 'absent'), folder], silentLog)
  await files.look()
  return { folder, first, files }
}

const readAll = async (read: (into: Buffer, from: number) => Promise<number>, bytes: number): Promise<Buffer> => {
  const all = Buffer.alloc(bytes)
  assert.equal(await read(all, 0), bytes)
  return all
}

test('the first folder that is there is read, and a file is known by its digest', async (t) => {
  const { folder, first, files } = await setUp(t)
  assert.equal(files.folder(), folder)
  const file = files.byDigest(first.digest)
  assert.ok(file !== null && file.current && file.architecture === 'x64')
  assert.equal(files.byDigest(sha256Of(Buffer.from('other'))), null)
})

test('one folder that was asked for and is not there is named; that none of several is there is nothing to say', async (t) => {
  const absent = path.join(tempFolder(t), 'absent')
  for (const [folders, faults] of [
    [[absent], [`${absent} is not a folder`]],
    [[absent, `${absent}-too`], []],
  ] as const) {
    const files = openAgentFiles(folders, silentLog)
    await files.look()
    assert.deepEqual([files.folder(), files.faults()], [null, faults])
  }
})

test('a folder that cannot be read is named, and what was read before is handed out until it can be', async (t) => {
  const { folder, first, files } = await setUp(t)
  fs.renameSync(folder, `${folder}-moved`)
  fs.symlinkSync(folder, folder)
  await files.look()
  const faults = [path.join(folder, 'absent'), folder].map((place) => `${place} cannot be read: ELOOP`)
  assert.deepEqual(files.faults(), faults)
  assert.ok(files.byDigest(first.digest) !== null)
  fs.unlinkSync(folder)
  await files.look()
  assert.deepEqual([files.faults(), files.all()], [[], []])
})

test('of a file that is replaced while it is sent, the rest is of the same file; after that, the new one is handed out', async (t) => {
  const { folder, first, files } = await setUp(t)
  const before = files.byDigest(first.digest)
  const letGo = before?.content.hold()
  assert.ok(before !== null && letGo !== null && letGo !== undefined)
  const second = putAgent(folder, 'muster-linux-x64.gz', Buffer.from('two'))
  await files.look()
  assert.equal(files.byDigest(first.digest), null)
  assert.ok(files.byDigest(second.digest) !== null)
  assert.ok((await readAll(before.content.read, before.content.bytes)).equals(first.bytes))
  letGo()
  assert.equal(before.content.hold(), null, 'nobody begins with it any more')
})

test('a file that is written to in its place is not handed out as what it was', async (t) => {
  const { first, files } = await setUp(t)
  const before = files.byDigest(first.digest)
  fs.writeFileSync(first.file, Buffer.concat([first.bytes, Buffer.from('more')]))
  assert.equal(await before?.content.isUnchanged(), false)
  await files.look()
  assert.equal(files.byDigest(first.digest), null)
  assert.deepEqual(
    files.all().map(({ content }) => content.sha256),
    [sha256Of(fs.readFileSync(first.file))],
  )
})

test('a file that is written to in its place with its time set back is not handed out as what it was', async (t) => {
  const { first, files } = await setUp(t)
  fs.utimesSync(first.file, 1000, 1000)
  await files.look()
  const before = files.byDigest(first.digest)
  const changedNs = () => fs.statSync(first.file, { bigint: true }).ctimeNs
  const openedNs = changedNs()
  fs.writeFileSync(first.file, Buffer.alloc(first.bytes.length))
  // The kernel counts ctime in steps of some milliseconds.
  await eventually('another ctime', () => {
    fs.utimesSync(first.file, 1000, 1000)
    return changedNs() !== openedNs
  })
  assert.equal(await before?.content.isUnchanged(), false)
})

test('a file that is moved is unchanged, and found so by as many callers as ask at once', async (t) => {
  const { folder, first, files } = await setUp(t)
  const content = files.byDigest(first.digest)?.content
  fs.renameSync(first.file, path.join(folder, 'muster-1-linux-x64.gz'))
  assert.deepEqual(await Promise.all([content?.isUnchanged(), content?.isUnchanged()]), [true, true])
  await files.look()
  assert.equal(files.byDigest(first.digest)?.name, 'muster-1-linux-x64.gz')
})

/** From now on, reads of that file fail with EIO where `fails` says so for their length. The handles that were opened. */
const failReads = (t: TestContext, file: string, fails: (length: number) => boolean) => {
  const opened: fs.promises.FileHandle[] = []
  const open = fs.promises.open.bind(fs.promises)
  t.mock.method(fs.promises, 'open', async (place: string, flags: number) => {
    const handle = await open(place, flags)
    if (place !== file) return handle
    opened.push(handle)
    const read = handle.read.bind(handle) as (...args: unknown[]) => Promise<unknown>
    return Object.assign(handle, {
      read: async (into: Buffer, ...rest: unknown[]) => {
        if (fails(into.length)) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
        return read(into, ...rest)
      },
    })
  })
  return opened
}

test('a file whose reading fails is named and closed, and the others are handed out', async (t) => {
  for (const isOfMagic of [true, false]) {
    const { folder, first, files } = await setUp(t)
    const { file } = putAgent(folder, 'muster-0-linux-x64.gz', Buffer.from('broken'))
    const opened = failReads(t, file, (length) => (length === 2) === isOfMagic)
    for (let looks = 1; looks <= 2; looks++) {
      await files.look()
      assert.ok(files.byDigest(first.digest) !== null)
      assert.deepEqual(files.faults(), [`${file} cannot be read: EIO`])
      assert.equal(opened.length, looks)
    }
    await eventually('it to be closed', () => opened.every(({ fd }) => fd === -1))
    t.mock.restoreAll()
  }
})

test('links, pipes, files that others may write and what is not compressed are named, and not handed out', async (t) => {
  const { folder, first, files } = await setUp(t)
  fs.symlinkSync(first.file, path.join(folder, 'muster-1-linux-x64.gz'))
  fs.mkdirSync(path.join(folder, 'muster-2-linux-x64.gz'))
  putAgent(folder, 'muster-3-linux-x64.gz', Buffer.from('three'))
  fs.chmodSync(path.join(folder, 'muster-3-linux-x64.gz'), 0o664)
  fs.writeFileSync(path.join(folder, 'muster-4-linux-x64.gz'), 'plain', { mode: 0o644 })
  fs.writeFileSync(path.join(folder, 'notes.txt'), 'not an agent')
  await files.look()
  assert.deepEqual(
    files.all().map(({ name }) => name),
    ['muster-linux-x64.gz'],
  )
  const faults = files.faults().map((fault) => fault.replaceAll(`${folder}/`, ''))
  assert.deepEqual(faults, [
    'muster-1-linux-x64.gz is a link: put the file itself there',
    'muster-2-linux-x64.gz is not a regular file',
    'muster-3-linux-x64.gz can be written by other users than its owner: chmod go-w muster-3-linux-x64.gz',
    'muster-4-linux-x64.gz is not compressed by gzip',
  ])
  fs.chmodSync(folder, 0o777)
  await files.look()
  assert.deepEqual([files.all(), files.faults().length], [[], 1])
})
