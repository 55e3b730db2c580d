import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openTestFolder } from '../../scripts/test-folder.ts'

const opened = (t: TestContext, long: boolean, memory?: string): string => {
  const folder = openTestFolder(long, memory)
  t.after(() => fs.rmdirSync(folder))
  return folder
}

test('the files of a run are below a folder of its own, in which every user has files that no other may remove', (t) => {
  const [one, other] = [opened(t, false), opened(t, false)]
  assert.notEqual(one, other)
  for (const folder of [one, other]) assert.equal(fs.statSync(folder).mode & 0o7777, 0o1777)
})

test('they are on a disk where there is no file system in memory, and in the long run', (t) => {
  const parents = [opened(t, false, '/nowhere'), opened(t, false, '/proc'), opened(t, true)].map((folder) =>
    path.dirname(folder),
  )
  assert.deepEqual(parents, [os.tmpdir(), os.tmpdir(), os.tmpdir()])
})

test('they are in memory where that has room and runs programs, and what was tried for that is gone', (t) => {
  const parent = path.dirname(opened(t, false, '/dev/shm'))
  assert.ok(['/dev/shm', os.tmpdir()].includes(parent), parent)
  assert.equal(fs.existsSync(`/dev/shm/muster-probe-${process.pid}`), false)
})

test('what a killed run has left is removed by the next, and what a running one has is not', (t) => {
  const [gone, there] = [spawnSync('true').pid, process.pid].map((pid) =>
    fs.mkdtempSync(path.join(os.tmpdir(), `muster-run-${pid}-`)),
  ) as [string, string]
  t.after(() => fs.rmdirSync(there))
  fs.writeFileSync(path.join(gone, 'left'), '')
  opened(t, true)
  assert.deepEqual([fs.existsSync(gone), fs.existsSync(there)], [false, true])
})
