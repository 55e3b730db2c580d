import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { Pkcs11Unavailable } from '#platform/pkcs11.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { pinOf } from './token-pin.ts'

const noPin = (shape: RegExp) => (error: unknown) =>
  error instanceof Pkcs11Unavailable &&
  error.trouble === 'pin' &&
  shape.test(error.message) &&
  !/2718/.test(error.message)

test('a PIN is one line of a file, read each time', (t) => {
  const file = path.join(tempFolder(t), 'pin')
  fs.writeFileSync(file, 'with a space \r\n', { mode: 0o600 })
  const places = { pin: file, credentialsFolder: null }
  assert.equal(pinOf(places, 'vault'), 'with a space ')
  fs.writeFileSync(file, '271828\n')
  assert.equal(pinOf(places, 'vault'), '271828')
})

test('a folder has a file for each token, and a credential serves all of them', (t) => {
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'vault'), '1111', { mode: 0o600 })
  fs.writeFileSync(path.join(folder, 'muster-pkcs11-pin'), '2222', { mode: 0o640 })
  assert.equal(pinOf({ pin: folder, credentialsFolder: null }, 'vault'), '1111')
  assert.equal(pinOf({ pin: null, credentialsFolder: folder }, 'vault'), '2222')
  assert.throws(() => pinOf({ pin: folder, credentialsFolder: null }, 'safe'), noPin(/there is no file .*safe/))
  // No label leads out of the folder.
  for (const label of ['../pin', '.', '..', 'a/b', ''])
    assert.throws(
      () => pinOf({ pin: folder, credentialsFolder: null }, label),
      noPin(/its label is no name for a file/),
    )
})

test('what is no PIN is refused without a word of it', (t) => {
  const file = path.join(tempFolder(t), 'pin')
  const read = () => pinOf({ pin: file, credentialsFolder: null }, 'vault')
  assert.throws(read, noPin(/there is no file/))
  for (const [content, shape] of [
    ['', /is not one line/],
    ['271828\n271828\n', /is not one line/],
    ['2718'.repeat(100), /longer than a PIN/],
  ] as const) {
    fs.writeFileSync(file, content, { mode: 0o600 })
    assert.throws(read, noPin(shape))
  }
  fs.writeFileSync(file, '271828')
  fs.chmodSync(file, 0o640)
  assert.throws(read, noPin(/others may read/))
  assert.throws(() => pinOf({ pin: null, credentialsFolder: null }, 'vault'), noPin(/none was named/))
})
