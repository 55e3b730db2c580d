import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { makeFolder, readShortFile } from './files.ts'

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

test('a folder is made with those above it, and one that is there already is kept, also behind a link', (t) => {
  const home = tempFolder(t)
  const folder = path.join(home, 'a', 'b', 'c')
  makeFolder(folder, 0o700)
  makeFolder(folder, 0o700)
  for (const made of [folder, path.dirname(folder), path.join(home, 'a')])
    assert.equal(fs.statSync(made).mode & 0o777, 0o700)
  fs.chmodSync(folder, 0o711)
  fs.symlinkSync(folder, path.join(home, 'link'))
  makeFolder(path.join(home, 'link'), 0o700)
  assert.equal(fs.statSync(folder).mode & 0o777, 0o711)
  makeFolder('/', 0o700)
})

test('a folder that cannot be made is refused with what the system says, and not tried for ever', (t) => {
  const home = tempFolder(t)
  const file = path.join(home, 'file')
  fs.writeFileSync(file, '')
  fs.symlinkSync(path.join(home, 'nowhere'), path.join(home, 'dangling'))
  assert.throws(() => makeFolder(file, 0o700), { code: 'EEXIST' })
  assert.throws(() => makeFolder(path.join(file, 'a', 'b'), 0o700), { code: 'ENOTDIR' })
  assert.throws(() => makeFolder(path.join(home, 'dangling', 'a'), 0o700), { code: 'EEXIST' })
  assert.throws(() => makeFolder('', 0o700), { code: 'ENOENT' })
})

test('a folder of the kernel that takes no other is no reason to wait', { skip: process.platform !== 'linux' }, () => {
  assert.throws(() => makeFolder('/proc/foo', 0o700), { code: 'ENOENT' })
  assert.throws(() => makeFolder('/proc/foo/bar', 0o700), { code: 'ENOENT' })
})
