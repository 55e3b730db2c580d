// A disk that fills under the helper: nothing is begun that cannot be remembered, no result is lost, and a cleanup still works.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openTaskMemory, emptyResult, type TaskRecord } from '#agent/helper/tasks/task-memory.ts'
import { ownMark } from '#platform/process-mark.ts'
import { done, testTrust } from '../fakes/helped-host.ts'
import { hourMs, taskId } from '../fakes/signed-tasks.ts'
import { idOf, refusedAs, taskedHost } from '../fakes/tasked-host.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const nowMs = Date.UTC(2027, 0, 1)

const record = (number: number): TaskRecord => ({
  ...{ id: taskId(number), type: 'run', expires_ms: nowMs + hourMs, begun_ms: nowMs + number, by: ownMark() },
  ...{ key: 'signer', attempts: 1, boot: null, parameters: null, result: null, forgotten: false },
})

const note = (): void => {}

test('a result that a full disk does not take is kept in memory, and written when there is room', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 1 << 20)
  const memory = openTaskMemory(disk.folder, testTrust, nowMs)
  for (const number of [1, 2, 3]) assert.equal(memory.begin(record(number), 'as-it-is'), 'begun')
  disk.fill(0)
  assert.throws(() => memory.begin(record(4), 'as-it-is'), { code: 'ENOSPC' })
  assert.equal(memory.isSeen(taskId(4)), false)
  const result = { ...emptyResult, output: { head: 'x'.repeat(8192), tail: 'y'.repeat(8192), bytes: 99_999 } }
  // The first takes the room that is kept back, which another program then fills.
  memory.end(taskId(1), result)
  disk.fill(0)
  memory.end(taskId(2), result)
  assert.deepEqual(memory.result(taskId(2)), result)
  const stored = (id: string) => openTaskMemory(disk.folder, testTrust, nowMs).result(id)
  assert.deepEqual([stored(taskId(1)), stored(taskId(2))], [result, null])
  disk.free()
  memory.sweep(nowMs, note)
  assert.deepEqual(stored(taskId(2)), result)
})

test('a helper on a full disk begins nothing, says so, and cleans up', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const tasked = taskedHost(t)
  const disk = mountTmpfs(t, path.join(tasked.host.folder, 'disk'), 1 << 20)
  const [logs, evidence] = ['logs', 'evidence'].map((name) => {
    const folder = path.join(disk.folder, name)
    fs.mkdirSync(folder, { mode: 0o755 })
    return folder
  })
  fs.writeFileSync(path.join(logs ?? '', 'old'), Buffer.alloc(100_000))
  const old = tasked.clock.nowMs() / 1000 - 86_400
  fs.utimesSync(path.join(logs ?? '', 'old'), old, old)
  fs.mkdirSync(path.join(disk.folder, 'tasks'), { mode: 0o700 })
  tasked.list(`state = "${disk.folder}/tasks"
[tasks.cleanup.logs]
directories = ["${logs}"]
older_than = "1h"
evidence = "${evidence}"
`)
  await tasked.learn()
  disk.fill(0)
  const rotate = { type: 'rotate-recovery', parameters: {} }
  const refused = tasked.authority.task(rotate)
  refusedAs(await tasked.begin(refused), 'DISK_FULL')
  const cleanup = tasked.authority.task({ type: 'cleanup', parameters: { name: 'logs' } })
  assert.deepEqual(done(await tasked.begin(cleanup)), { outcome: 'begun' })
  const result = await tasked.ended(idOf(cleanup))
  assert.deepEqual([result.code, result.evidence?.['removed']], [null, 1])
  // There is room again, and what was refused was not remembered.
  assert.deepEqual(done(await tasked.begin(refused)), { outcome: 'yours' })
  // Its lock is a file on that disk.
  await tasked.host.close()
})

test('a cleanup on a full disk removes as many files as its list has room for, however long their names are', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const tasked = taskedHost(t)
  const disk = mountTmpfs(t, path.join(tasked.host.folder, 'disk'), 4 << 20)
  const folderOf = (name: string): string => path.join(disk.folder, name)
  const [logs, evidence, state] = [folderOf('logs'), folderOf('evidence'), folderOf('tasks')]
  for (const folder of [logs, evidence]) fs.mkdirSync(folder, { mode: 0o755 })
  fs.mkdirSync(state, { mode: 0o700 })
  const old = tasked.clock.nowMs() / 1000 - 86_400
  for (let number = 0; number < 1000; number++) {
    // In JSON each of them takes six times as many bytes.
    const file = path.join(logs, `${number}${'\u0001'.repeat(240)}`)
    fs.writeFileSync(file, '')
    fs.utimesSync(file, old, old)
  }
  tasked.list(`state = "${state}"
[tasks.cleanup.logs]
directories = ["${logs}"]
older_than = "1h"
evidence = "${evidence}"
`)
  await tasked.learn()
  disk.fill(0)
  const result = await tasked.carryOut({ type: 'cleanup', parameters: { name: 'logs' } })
  const { removed, left, list } = result.evidence as { removed: number; left: number; list: string }
  assert.equal(result.code, null)
  assert.ok(removed >= 50 && removed + left === 1000, `${removed} and ${left}`)
  assert.equal(fs.readdirSync(logs).length, left)
  const listed = JSON.parse(fs.readFileSync(list, 'utf8')) as { removed: { name: string }[] }
  assert.equal(listed.removed.length, removed)
  await tasked.host.close()
})
