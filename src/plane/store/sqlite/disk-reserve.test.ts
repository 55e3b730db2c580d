import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Log } from '#platform/log.ts'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { tempFolder } from '../../../../test/process/temp-folder.ts'
import { openDiskReserve, reserveBytes, reserveName } from './disk-reserve.ts'

test('a reserve that cannot be made though there is room is tried less and less often, and logged once', (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, reserveName)
  // Stands for a quota: the disk has room, and neither writing the file nor shortening it works.
  fs.mkdirSync(file)
  let warnings = 0
  const log: Log = { ...silentLog, warn: () => void warnings++ }
  const clock = manualClock(1_800_000_000_000)
  const reserve = openDiskReserve(folder, log, clock)
  for (let second = 0; second < 1000; second++) {
    clock.advance(1000)
    reserve.refill()
  }
  assert.equal(warnings, 1)
  assert.notEqual(reserve.warning(), null)

  fs.rmdirSync(file)
  let seconds = 0
  for (; seconds < 1000 && !fs.existsSync(file); seconds++) {
    clock.advance(1000)
    reserve.refill()
  }
  assert.ok(seconds > 10 && seconds <= 300, String(seconds))
  assert.equal(fs.statSync(file).size, reserveBytes)
  assert.equal(reserve.warning(), null)
})

test('after one failure the reserve is made within seconds', (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, reserveName)
  fs.mkdirSync(file)
  const clock = manualClock(1_800_000_000_000)
  const reserve = openDiskReserve(folder, silentLog, clock)
  fs.rmdirSync(file)
  reserve.refill()
  assert.equal(fs.existsSync(file), false)
  clock.advance(2000)
  reserve.refill()
  assert.equal(reserve.warning(), null)
})
