import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { startChild } from './child.ts'
import { eventually, within } from './eventually.ts'
import { fairNowMs, fairStopwatch } from './fair-time.ts'
import { openFakeTime } from './fake-time.ts'
import { freePort, portsOf } from './free-port.ts'
import { tempFolder } from './temp-folder.ts'
import { mountTmpfs } from './tmpfs.ts'
import { replyWatch } from './tls-records.ts'

const node = process.execPath

test('what a test started is ended after it, before its folder is removed', async (t) => {
  const seen = { folder: '', pid: 0 }
  await t.test('a test that cleans up nothing itself', async (inner) => {
    seen.folder = tempFolder(inner)
    const file = path.join(seen.folder, 'alive')
    const program = `require('fs').writeFileSync(${JSON.stringify(file)}, ''); setInterval(() => {}, 1000)`
    const child = startChild(inner, node, ['-e', program], {})
    seen.pid = child.pid
    await eventually('the child to write', () => fs.existsSync(file))
  })
  assert.throws(() => process.kill(seen.pid, 0), { code: 'ESRCH' })
  assert.equal(fs.existsSync(seen.folder), false)
})

test('kill9 reports the signal, output is kept, variables of the developer stay out', async (t) => {
  process.env['MUSTER_DATA'] = '/elsewhere'
  t.after(() => delete process.env['MUSTER_DATA'])
  const program = 'console.log(String(process.env.MUSTER_DATA), process.env.GIVEN); setInterval(() => {}, 1000)'
  const child = startChild(t, node, ['-e', program], { env: { GIVEN: 'yes' } })
  await eventually('its output', () => child.stdout() === 'undefined yes\n')
  assert.deepEqual(await child.kill9(), { code: null, signal: 'SIGKILL' })
  assert.equal(child.running(), false)
})

test('waiting ends: with what was awaited and the last trouble', async () => {
  await assert.rejects(
    eventually('the impossible', () => Promise.reject(new Error('no')), { withinMs: 50, everyMs: 5 }),
    (error: Error) => error.message === 'the impossible: not within 50 ms' && (error.cause as Error).message === 'no',
  )
  await assert.rejects(within('forever', 10, new Promise(() => {})), /forever: not within 10 ms/)
})

test('the longer something takes, the seldomer it is asked for; with a pace given, always at that', async () => {
  const asked = async (everyMs?: number): Promise<readonly number[]> => {
    const startMs = performance.now()
    const times: number[] = []
    const isOver = (): boolean => times.push(performance.now() - startMs) > 0 && performance.now() - startMs > 600
    await eventually('some time', isOver, everyMs === undefined ? {} : { everyMs })
    return times
  }
  const times = await asked()
  // A timer counts whole milliseconds, and may be one early.
  assert.ok(times.length <= 24, `${times.length} times`)
  assert.ok(
    times.every((ms, at) => at === 0 || ms - (times[at - 1] ?? 0) >= Math.max(20, (times[at - 1] ?? 0) / 10) - 2),
    times.join(' '),
  )
  assert.ok((await asked(5)).length <= 121)
})

test('fair time runs slower than the wall clock while more processes want to run than there are processors', async (t) => {
  const startMs = performance.now()
  const passedMs = fairStopwatch()
  await eventually('some time', () => performance.now() - startMs > 100)
  assert.ok(passedMs() > 0 && passedMs() <= performance.now() - startMs + 1, 'never faster')

  const busy = Array.from({ length: 2 * os.availableParallelism() }, () =>
    startChild(t, '/bin/sh', ['-c', 'echo up; while :; do :; done'], {}),
  )
  await eventually('all to run', () => busy.every((child) => child.stdout() !== ''))
  const [fairMs, wallMs] = [fairNowMs(), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, 500))
  const [fair, wall] = [fairNowMs() - fairMs, performance.now() - wallMs]
  assert.ok(fair < 0.75 * wall, `${fair} of ${wall} ms`)
  for (const child of busy) await child.kill9()
})

test('fake time moves the wall clock of a running Node and leaves its monotonic clock alone', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const day = 86_400_000
  const time = openFakeTime(tempFolder(t), library)
  const program = `
    const started = performance.now()
    setInterval(() => console.log(JSON.stringify([Date.now(), performance.now() - started])), 20)`
  const child = startChild(t, node, ['-e', program], { env: time.env })
  const newest = (): [number, number] | null => {
    const line = child.stdout().trimEnd().split('\n').at(-1) ?? ''
    return line === '' ? null : JSON.parse(line)
  }
  const [realMs] = await eventually('a first time', newest)
  assert.ok(Math.abs(realMs - Date.now()) < 10_000)
  time.advance(400 * day)
  const [, monotonicMs] = await eventually('a time 400 days later', () => {
    const times = newest()
    return times !== null && times[0] - Date.now() > 399 * day && times
  })
  assert.ok(monotonicMs < day)
})

test('a tmpfs can be filled to the last bytes and freed again', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 1 << 20)
  const file = path.join(disk.folder, 'file')
  disk.fill(8192)
  assert.throws(() => fs.writeFileSync(file, Buffer.alloc(65_536)), { code: 'ENOSPC' })
  disk.free()
  fs.writeFileSync(file, Buffer.alloc(65_536))
})

test('a reply is distinguished from handshake and tickets however its records are cut into chunks', () => {
  const record = (type: number, length: number): Buffer =>
    Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length, 23)])
  const [handshake, change, data] = [22, 20, 23]
  for (const size of [1, 2, 3, 5, 7, 1000]) {
    const watch = replyWatch()
    const chunks = (...records: Buffer[]): Buffer[] => {
      const all = Buffer.concat(records)
      return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.subarray(at * size, (at + 1) * size))
    }
    const sends = (...records: Buffer[]): void => chunks(...records).forEach((chunk) => watch.sent(chunk))
    const replies = (...records: Buffer[]): number =>
      Math.max(...chunks(...records).map((chunk) => watch.received(chunk)))
    sends(record(handshake, 300))
    assert.equal(replies(record(handshake, 122), record(change, 1), record(data, 900)), 0, 'its part of the handshake')
    sends(record(change, 1), record(data, 69))
    assert.equal(replies(record(data, 74), record(data, 74)), 0, 'tickets')
    sends(record(data, 600))
    assert.equal(replies(record(data, 19)), 0, 'an alert')
    assert.equal(replies(record(data, 400)), 400, `a reply in chunks of ${size}`)
  }
})

test('lanes that run side by side choose among ports of their own, and no port twice in a row', async () => {
  const lanes = Array.from({ length: 9 }, (_, at) => portsOf(`${at}/9`))
  for (const [at, { from, count }] of lanes.entries()) {
    assert.ok(count > 2000)
    assert.ok(from >= 10_000 && from + count <= (lanes[at + 1]?.from ?? 32_768))
  }
  assert.deepEqual(portsOf(undefined), { from: 10_000, count: 22_768 })
  const ports = [await freePort(), await freePort(), await freePort()]
  assert.equal(new Set(ports).size, 3)
})
