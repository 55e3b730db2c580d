import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as net from 'node:net'
import * as path from 'node:path'
import { test } from 'node:test'
import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { downloadOn, type DownloadAnswer } from './http-download.ts'
import { systemTimers } from './timers.ts'

const whole = Buffer.from('0123456789')

/** Has the ten bytes, and goes on where it is asked to. */
const serving = async (t: Scope): Promise<number> => {
  const server = http.createServer((request, response) => {
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? []
    const at = from === undefined ? 0 : Number(from)
    if (from !== undefined && at >= whole.length)
      return void response.writeHead(416, { 'content-range': `bytes */${whole.length}` }).end()
    const length = { 'content-length': whole.length - at }
    response.writeHead(from === undefined ? 200 : 206, length).end(whole.subarray(at))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void server.close())
  return (server.address() as net.AddressInfo).port
}

const downloading = async (t: Scope) => {
  const port = await serving(t)
  const file = path.join(tempFolder(t), 'file')
  const download = (most: number): Promise<DownloadAnswer> => {
    const request = { path: '/', authority: 'localhost', headers: {}, etag: '"ten"', most, silentMs: 30_000 }
    return downloadOn(systemTimers, net.connect(port, '127.0.0.1'), request, file, new AbortController().signal)
  }
  return { file, download, has: () => fs.readFileSync(file, 'utf8') }
}

test('a file that needs more room than there is is not begun', async (t) => {
  const { file, download } = await downloading(t)
  assert.deepEqual(await download(9), { kind: 'too-large', bytes: 10 })
  assert.equal(fs.existsSync(file), false)
})

test('one that was cut off goes on, and needs room only for what is missing', async (t) => {
  const { file, download, has } = await downloading(t)
  fs.writeFileSync(file, '0123456')
  assert.deepEqual(await download(2), { kind: 'too-large', bytes: 10 })
  assert.deepEqual([await download(3), has()], [{ kind: 'downloaded' }, '0123456789'])
})

test('one of which everything is there is downloaded, and one that is longer begins anew', async (t) => {
  const { file, download, has } = await downloading(t)
  fs.writeFileSync(file, whole)
  assert.deepEqual(await download(0), { kind: 'downloaded' })
  fs.writeFileSync(file, '0123456789 and more')
  await assert.rejects(download(10), { code: 'ECONNRESET' })
  assert.deepEqual([await download(10), has()], [{ kind: 'downloaded' }, '0123456789'])
})
