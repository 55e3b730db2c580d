import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/repository.ts'
import { childEnvironment } from '../process/child.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('a failure, a crash, a skip and a note are all told, and what a file printed only when it failed', (t) => {
  const folder = tempFolder(t)
  const files = {
    'good.test.ts': `test('a', () => console.log('chatter')); test('b', (t) => t.skip('no such peer')); test('c', (t) => t.diagnostic('took 3 ms'))`,
    'bad.test.ts': `test('d', () => { console.log('last words'); throw new Error('the reason') })`,
    'crash.test.ts': `throw new Error('not even started')`,
  }
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(path.join(folder, name), `import { test } from 'node:test'\n${text}\n`)
  }
  const reporter = path.join(root, 'scripts', 'test-reporter.ts')
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--test', `--test-reporter=${reporter}`, ...Object.keys(files)],
    {
      cwd: folder,
      env: childEnvironment({}),
      encoding: 'utf8',
    },
  )
  assert.equal(status, 1)
  for (const told of [
    /^ok +good\.test\.ts {2}3 tests/m,
    /^ +skipped: b: no such peer$/m,
    /^ +took 3 ms$/m,
    /^FAILED bad\.test\.ts/m,
    /Error: the reason\n +at /,
    /printed by this file ---\nlast words/,
    /^FAILED crash\.test\.ts {2}did not finish/m,
    /not even started/,
    /^2 passed, 2 failed, 1 skipped in /m,
  ]) {
    assert.match(stdout, told)
  }
  assert.doesNotMatch(stdout, /chatter/)
})
