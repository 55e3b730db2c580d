import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { trimLog } from './service-process.ts'

test('of a log that has grown without measure its end is kept, and no more than that', (t) => {
  const file = path.join(tempFolder(t), 'app.log')
  const kept = `${file}.1`
  fs.writeFileSync(file, 'short\n')
  trimLog(file, 1024, true)
  assert.deepEqual([fs.readFileSync(file, 'utf8'), fs.existsSync(kept)], ['short\n', false])
  for (const last of ['first end\n', 'second end\n']) {
    // Mostly a hole: as long as a program makes it in a minute.
    fs.truncateSync(file, 20 * 2 ** 30)
    fs.appendFileSync(file, last)
    trimLog(file, 1024, true)
    assert.deepEqual([fs.statSync(file).size, fs.statSync(kept).size], [0, 1024])
    assert.ok(fs.readFileSync(kept, 'utf8').endsWith(`\0${last}`))
  }
  fs.rmSync(file)
  trimLog(file, 1024, true)
})
