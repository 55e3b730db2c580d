import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { noLeaves, openLeafStore, type Leaves } from './leaf-store.ts'

const kept: Leaves = {
  ...noLeaves,
  requests: [
    { output: 'web', epoch: 1, keyType: 'p256', usage: 'client', names: [], keyPem: 'PRIVATE KEY', csrPem: 'x' },
  ],
}

test('keys are in no file from the moment on that they must not reach a disk, and are kept in memory', (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, 'programs.json')
  let onDisk = true
  const open = () =>
    openLeafStore(
      folder,
      () => onDisk,
      (act) => act(),
    )
  const store = open()
  store.keep(kept)
  assert.ok(fs.readFileSync(file, 'utf8').includes('PRIVATE KEY'))
  onDisk = false
  store.retry()
  assert.ok(!fs.existsSync(file))
  assert.deepEqual(store.current(), kept)
  onDisk = true
  store.retry()
  assert.deepEqual(open().current(), kept)

  onDisk = false
  fs.writeFileSync(`${file}.new`, 'half a PRIVATE KEY')
  assert.deepEqual(open().current(), noLeaves, 'an agent that keeps nothing on the disk')
  assert.deepEqual(fs.readdirSync(folder), [])
})
