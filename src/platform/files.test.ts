import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { readShortFile } from './files.ts'

test('a file is read up to what it may hold, and one without end is too long', (t) => {
  const file = path.join(tempFolder(t), 'x')
  assert.equal(readShortFile(file, 4), null)
  for (const [content, expected] of [
    ['', { text: '' }],
    ['abc', { text: 'abc' }],
    ['abcd', { text: 'abcd' }],
    ['abcde', 'too-long'],
  ] as const) {
    fs.writeFileSync(file, content)
    assert.deepEqual(readShortFile(file, 4), expected)
  }
  assert.equal(readShortFile('/dev/zero', 1024), 'too-long')
  assert.throws(() => readShortFile(path.dirname(file), 4), { code: 'EISDIR' })
})
