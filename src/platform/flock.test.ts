import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { flockFolder } from './flock.ts'

const emptyFolder = (t: TestContext): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'flock-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

const lock = (folder: string): { release(): void } => {
  const lock = flockFolder(folder, 'lock')
  assert.ok(typeof lock === 'object', 'it is locked')
  return lock
}

test('a folder is locked by one holder at a time, and again once that has released it', (t) => {
  const folder = path.join(emptyFolder(t), 'made')
  const first = lock(folder)
  assert.equal(flockFolder(folder, 'lock'), 'taken')
  first.release()
  lock(folder).release()
})

test('the kernel drops the lock of a process that is killed', (t) => {
  const folder = emptyFolder(t)
  const script = `
    import { flockFolder } from ${JSON.stringify(path.join(import.meta.dirname, 'flock.ts'))}
    console.log(typeof flockFolder(process.argv[1], 'lock'))
    process.kill(process.pid, 'SIGKILL')`
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script, folder])
  assert.deepEqual([stdout.toString(), signal], ['object\n', 'SIGKILL'])
  lock(folder).release()
})

test('a program that the holder has started does not keep the lock', (t) => {
  const folder = emptyFolder(t)
  const held = lock(folder)
  // It looks for the file among what it has open.
  const { stdout } = spawnSync('ls', ['-l', '/proc/self/fd'])
  assert.doesNotMatch(stdout.toString(), new RegExp(folder))
  held.release()
})

test('a folder that cannot be made cannot be locked', (t) => {
  const file = path.join(emptyFolder(t), 'file')
  fs.writeFileSync(file, '')
  assert.equal(flockFolder(path.join(file, 'below'), 'lock'), 'impossible')
})
