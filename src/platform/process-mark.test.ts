import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { isOfWriter, markOf, ownMark, stillRuns } from './process-mark.ts'

test('this process runs, one that began at another moment under its number does not', () => {
  const own = ownMark()
  assert.equal(stillRuns(own), true)
  assert.equal(stillRuns({ ...own, birth: `${own.birth}0` }), false)
  assert.equal(stillRuns({ pid: 2 ** 22 + 1, birth: null }), false)
})

test('a process belongs to the owner of a file or to another user', (t) => {
  const ours = path.join(tempFolder(t), 'status.json')
  fs.writeFileSync(ours, '')
  assert.equal(isOfWriter(process.pid, ours), true)
  const asRoot = process.getuid?.() === 0
  if (asRoot) fs.chownSync(ours, 65_534, 65_534)
  assert.equal(isOfWriter(process.pid, asRoot ? ours : '/'), false)
})

test('a process that has ended does not run, even if it was not reaped', async () => {
  // The shell starts a child, becomes a program that never looks after it, and says which it was.
  const parent = spawn('/bin/sh', ['-c', 'true & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const mark = markOf(Number(line.toString()))
    for (let look = 0; look < 500 && stillRuns(mark); look++) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.equal(stillRuns(mark), false)
  } finally {
    parent.kill('SIGKILL')
  }
})
