import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { musterCommand } from '../process/child.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** What bash would offer for these words, the last one unfinished. */
const offered = (folder: string, words: readonly string[]): string[] => {
  const script = `source <("$0" completion bash); COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _muster
    printf '%s\\n' "\${COMPREPLY[@]}"`
  const out = execFileSync('bash', ['-c', script, musterCommand, ...words], { cwd: folder, encoding: 'utf8' })
  return out.split('\n').filter((line) => line !== '')
}

test('bash completes commands, options and their values', (t) => {
  const folder = tempFolder(t)
  assert.deepEqual(offered(folder, ['node', 'q']), ['quarantine'])
  assert.deepEqual(offered(folder, ['key', 'create', 'a', '--role', '']), ['viewer', 'operator', 'platform-admin'])
  assert.deepEqual(offered(folder, ['node', 'list', '--sta']), ['--state'])
})

test('what stands on the command line is never run', (t) => {
  const folder = tempFolder(t)
  offered(folder, ['node', '$(touch owned)', '`touch owned`', '; touch owned', ''])
  assert.equal(fs.existsSync(path.join(folder, 'owned')), false)
})
