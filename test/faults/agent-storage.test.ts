// The disk under an agent, really full and really read-only.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { fileCredentialStore } from '#agent/state/credential-store.ts'
import { noCredentials, type Credentials } from '#agent/state/credentials.ts'
import { openKeeper } from '#agent/state/identity-keeper.ts'
import { openRecord, type AgentRecord } from '#agent/diagnostics/record.ts'
import { keepRecordFiles, readRecord, recordPath } from '#agent/diagnostics/record-files.ts'
import { conditionsOf } from '#agent/diagnostics/report.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { openStorage, reserveBytes, withReserve } from '#agent/state/storage.ts'
import { trouble } from '#agent/core/trouble.ts'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

/** `files`: begins to write the record down. */
const setUp = (folder: string) => {
  const clock = manualClock(Date.UTC(2026, 10, 15))
  const timers = manualTimers(clock)
  const writeFailed = (errno: string): void => record.count({ kind: 'diagnostic-write-failed', errno })
  const storage = openStorage(clock, folder, true, writeFailed)
  const record: AgentRecord = openRecord(clock, storage, readRecord(folder))
  const files = () => keepRecordFiles({ clock, timers, log: silentLog }, folder, record, storage)
  const keeper = openKeeper(withReserve(fileCredentialStore(folder), storage))
  const conditions = () => conditionsOf(record.now().status.troubles, record.pressedSince(), storage.freeBytes())
  return { clock, timers, storage, record, files, keeper, conditions }
}

/** A request makes credentials of any size. */
const holding = (size: number): Credentials => ({
  ...noCredentials,
  request: {
    purpose: { kind: 'enroll' },
    keyType: 'p256',
    keyPem: 'k'.repeat(size),
    csrPem: 'c',
    sinceMs: 0,
    recoveryKey: null,
    insteadOf: null,
    madeFor: null,
  },
})

const readOnly = (t: Scope, folder: string): { undo(): void } => {
  execFileSync('mount', ['-o', 'remount,ro', folder])
  let undone = false
  const undo = (): void => {
    if (!undone) execFileSync('mount', ['-o', 'remount,rw', folder])
    undone = true
  }
  cleanup(t, undo)
  return { undo }
}

test('on a full disk credentials are written in the reserve, again and again, and it is whole afterwards', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const folder = path.join(disk.folder, 'state')
  const { keeper, storage } = setUp(folder)
  assert.equal(storage.reserve(), true)
  assert.equal(keeper.keep(holding(20_000)).persisted, true)
  disk.fill(0)
  for (let size = 20_001; size < 20_011; size++) {
    assert.equal(keeper.keep(holding(size)).persisted, true)
    assert.equal(storage.reserve(), true)
  }
  assert.equal(fileCredentialStore(folder).load().request?.keyPem.length, 20_010)
  assert.equal(fs.statSync(path.join(folder, 'reserve')).mode & 0o777, 0o600)
})

test('what does not even fit in the reserve is disk_full with its evidence, and heals when there is room', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const folder = path.join(disk.folder, 'state')
  const { keeper, storage, clock } = setUp(folder)
  disk.fill(0)
  const kept = keeper.keep(holding(2 * reserveBytes))
  assert.ok(!kept.persisted)
  assert.equal(fs.existsSync(path.join(folder, 'identity.json.new')), false, 'half a key is left behind')
  const what = storage.notKept(kept, 'The renewal waits')
  assert.equal(what.class, 'disk_full')
  assert.equal(what.code, 'disk_full')
  assert.deepEqual(Object.keys(what.evidence), ['errno', 'path', 'free_bytes'])
  assert.equal(what.evidence['errno'], 'ENOSPC')
  assert.equal(what.evidence['path'], folder)
  assert.equal(storage.errno(), 'ENOSPC')
  assert.equal(storage.fault()?.class, 'disk_full')
  clock.advance(10_000)
  disk.free()
  storage.check()
  assert.equal(keeper.retry().persisted, true)
  clock.advance(10_000)
  storage.check()
  assert.equal(storage.fault(), null)
  assert.equal(storage.errno(), null)
  assert.equal(storage.reserve(), true)
})

test('a reserve that could not be made is made as soon as there is room', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  disk.fill(reserveBytes / 2)
  const { storage, clock } = setUp(path.join(disk.folder, 'state'))
  assert.equal(storage.reserve(), false)
  assert.equal(fs.existsSync(path.join(disk.folder, 'state/reserve')), false)
  disk.free()
  storage.check()
  assert.equal(storage.reserve(), false)
  clock.advance(10_000)
  storage.check()
  assert.equal(storage.reserve(), true)
})

test('little room is pressure before it is a full disk', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 8 * 1024 * 1024)
  const { storage, clock, record, files, conditions, timers } = setUp(path.join(disk.folder, 'state'))
  files()
  assert.equal(storage.pressure(), false)
  assert.deepEqual(conditions(), [])
  disk.fill(512 * 1024)
  clock.advance(1_000)
  assert.equal(storage.pressure(), true)
  assert.equal(storage.fault(), null)
  assert.equal(storage.identityWritable(), true)
  const [pressed] = conditions()
  assert.equal(pressed?.name, 'node_observability_disk_pressure')
  assert.ok(Number(pressed?.evidence['free_bytes']) <= 512 * 1024)

  for (let time = 0; time < 5; time++) {
    record.attempt('renewal', 'renew the certificate')
    record.facts({ node_id: `gpu-${time}` })
  }
  timers.advance(5_000)
  assert.equal(readStatusFile(path.join(disk.folder, 'state'))?.node_id, 'gpu-4')
  const dropped = record.now().figures.dropped.map(({ source, reason, count }) => [source, reason, count])
  assert.deepEqual(dropped, [
    ['record', 'disk_pressure', 5],
    ['status', 'disk_pressure', 4],
  ])
  const [still] = conditions()
  assert.equal(still?.since, pressed?.since)
})

test('the record and the status are still written on a disk without a free byte', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const folder = path.join(disk.folder, 'state')
  const { record, files, timers, storage } = setUp(folder)
  files()
  record.changed('agent', 'started', 'The agent was started.')
  record.facts({ node_id: 'gpu-001' })
  timers.advance(1_000)
  disk.fill(0)
  timers.advance(1_000)
  record.trouble('renewal', trouble('disk_full', 'Full.', 'make room'), null)
  timers.advance(5_000)
  assert.equal(readStatusFile(folder)?.troubles[0]?.code, 'disk_full')
  assert.equal(readRecord(folder).at(-1)?.code, 'disk_full')
  assert.deepEqual(record.now().figures.diagnosticWriteFailures, {})
  assert.equal(storage.diagnosticsWritable(), true)
  assert.equal(fs.existsSync(path.join(folder, 'status.json.new')), false)
})

test('a read-only disk is the same condition with EROFS; the agent goes on in memory and writes when it may', (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, tempFolder(t), 4 * 1024 * 1024)
  const folder = path.join(disk.folder, 'state')
  const { keeper, storage, record, files, clock, timers } = setUp(folder)
  files()
  keeper.keep(holding(1))
  const mount = readOnly(t, disk.folder)
  clock.advance(1_000)
  assert.equal(storage.fault()?.evidence['errno'], 'EROFS')
  assert.equal(storage.identityWritable(), false)
  const kept = keeper.keep(holding(2))
  assert.ok(!kept.persisted)
  assert.equal(storage.notKept(kept, 'Only in memory').evidence['errno'], 'EROFS')
  assert.equal(keeper.credentials().request?.keyPem.length, 2)
  record.changed('renewal', 'read-only', 'It happened.')
  timers.advance(1_000)
  assert.deepEqual(record.now().figures.diagnosticWriteFailures, { EROFS: 1 })
  assert.equal(storage.diagnosticsWritable(), false)
  assert.equal(record.now().events.at(-1)?.code, 'read-only')

  mount.undo()
  clock.advance(1_000)
  assert.equal(keeper.retry().persisted, true)
  record.changed('renewal', 'writable', 'It happened.')
  timers.advance(1_000)
  storage.check()
  assert.equal(storage.fault(), null)
  assert.equal(storage.diagnosticsWritable(), true)
  assert.deepEqual(
    readRecord(folder).map(({ code }) => code),
    ['read-only', 'writable'],
  )
})

test('keys that stay in memory need no reserve', (t) => {
  const folder = tempFolder(t)
  const clock = manualClock(0)
  const storage = openStorage(clock, folder, false, () => {})
  storage.check()
  assert.equal(storage.reserve(), true)
  assert.deepEqual(fs.readdirSync(folder), [])
})

test('a record that was torn by a power cut is the one before it', (t) => {
  const folder = tempFolder(t)
  const first = setUp(folder)
  first.files()
  for (const name of ['one', 'two', 'three']) {
    first.record.changed('renewal', name, 'It happened.')
    first.timers.advance(1_000)
  }
  const whole = fs.readFileSync(recordPath(folder))
  assert.deepEqual(
    readRecord(folder).map(({ code }) => code),
    ['one', 'two', 'three'],
  )
  // Both halves of the file in turn: the newest is in one of them, and is lost with it; the one before is not.
  const codes = [0, 32 * 1024].map((offset) => {
    const torn = Buffer.from(whole)
    torn.fill(0, offset + 100, offset + 200)
    fs.writeFileSync(recordPath(folder), torn)
    return readRecord(folder).map(({ code }) => code)
  })
  assert.deepEqual(codes.map((found) => found.length).sort(), [2, 3])

  fs.writeFileSync(recordPath(folder), 'not a record')
  assert.deepEqual(readRecord(folder), [])
  const again = setUp(folder)
  const files = again.files()
  again.record.changed('renewal', 'four', 'It happened.')
  files.close()
  assert.deepEqual(
    readRecord(folder).map(({ code }) => code),
    ['four'],
  )
  assert.equal(fs.statSync(recordPath(folder)).size, 64 * 1024)
})

test('the record outlives the process, and stays within its size whatever is noted', (t) => {
  const folder = tempFolder(t)
  const { record, files, timers } = setUp(folder)
  files()
  for (let number = 0; number < 200; number++) record.changed('renewal', `code ${number}`, 'x'.repeat(5000))
  timers.advance(1_000)
  assert.equal(fs.statSync(recordPath(folder)).size, 64 * 1024)
  const next = setUp(folder)
  assert.equal(next.record.now().events.at(-1)?.code, 'code 199')
  assert.ok(next.record.now().events.length > 20)
})
