// The credentials are swapped as one unit: whatever fails, and whenever, a whole generation is on the disk.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import * as path from 'node:path'
import { mock, test } from 'node:test'
import nodeFs from 'node:fs'
import { DamagedCredentials, fileCredentialStore } from '#agent/state/credential-store.ts'
import { noCredentials, type Credentials } from '#agent/state/credentials.ts'
import { openKeeper } from '#agent/state/identity-keeper.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** A generation whose parts can be seen to belong together. */
const credentials = (serial: number, storage: 'file' | 'memory' = 'file'): Credentials => ({
  identity: {
    source: 'plane',
    nodeId: 'gpu-001',
    domain: 'example.test',
    epoch: 1,
    profile: { name: 'x', key_storage: storage, key_types: [], lifetime_ms: 1, renew_from: 0.5, renew_to: 0.6 },
    endpoints: { id: 'r', revision: 1, runtime: ['https://a'], stream: ['wss://a'] },
    roots: [`root ${serial}`],
    trustRevision: 0,
    withdrawnIssuers: [],
    issuerRoots: { revision: 0, roots: [] },
    graceMs: 1,
    understands: [],
    marked: true,
    origin: { url: 'https://a', rootFingerprint: 'ab', usedSecretHash: null },
    current: {
      keyPem: `key ${serial} `.repeat(2000),
      chainPem: `certificate ${serial}`,
      rootPem: null,
      serial: String(serial),
      proven: false,
      issuedAtMs: 0,
      notAfterMs: 1,
    },
    previous: null,
    counter: null,
    recovery: null,
    clockToleranceMs: 300_000,
  },
  request: null,
})

const isWhole = ({ identity }: Credentials): boolean =>
  identity !== null &&
  identity.current.chainPem === `certificate ${identity.current.serial}` &&
  identity.current.keyPem.startsWith(`key ${identity.current.serial} `) &&
  identity.roots[0] === `root ${identity.current.serial}`

const steps = ['mkdirSync', 'openSync', 'fchmodSync', 'writeFileSync', 'fsyncSync', 'closeSync', 'renameSync'] as const

for (const step of steps) {
  test(`when ${step} fails in the middle of a swap, the old or the new credentials are there, whole`, (t) => {
    const folder = tempFolder(t)
    const store = fileCredentialStore(folder)
    store.save(credentials(1))
    mock.method(nodeFs, step, () => {
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    })
    syncBuiltinESMExports()
    try {
      assert.throws(() => store.save(credentials(2)), /no space/)
    } finally {
      mock.restoreAll()
      syncBuiltinESMExports()
    }
    const found = fileCredentialStore(folder).load()
    assert.ok(isWhole(found))
    assert.equal(found.identity?.current.serial, '1')
    store.save(credentials(3))
    assert.equal(store.load().identity?.current.serial, '3')
  })
}

test('an agent killed at any moment finds whole credentials', async (t) => {
  const folder = tempFolder(t)
  const file = path.join(import.meta.dirname, '../fakes/save-credentials-forever.ts')
  for (let round = 0; round < 10; round++) {
    const child = spawn(process.execPath, [file, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    await new Promise((resolve) => setTimeout(resolve, 3 * round))
    child.kill('SIGKILL')
    await once(child, 'exit')
    const { identity } = fileCredentialStore(folder).load()
    assert.ok(identity !== null)
    assert.equal(identity.current.chainPem, `certificate of ${identity.current.keyPem}`)
  }
})

test('what cannot be written stays in force and is written later', (t) => {
  const folder = tempFolder(t)
  const keeper = openKeeper(fileCredentialStore(folder))
  fs.mkdirSync(path.join(folder, 'identity.json.new'))
  assert.equal(keeper.keep(credentials(1)).persisted, false)
  assert.equal(keeper.credentials().identity?.current.serial, '1')
  assert.equal(keeper.isPersisted(), false)
  assert.equal(keeper.keepFirst(credentials(2)).persisted, false)
  assert.equal(keeper.credentials().identity?.current.serial, '1')
  fs.rmdirSync(path.join(folder, 'identity.json.new'))
  assert.equal(keeper.retry().persisted, true)
  assert.equal(openKeeper(fileCredentialStore(folder)).credentials().identity?.current.serial, '1')
})

test('a profile that comes to forbid keys on disk has them removed, the half of a broken swap too', (t) => {
  const folder = tempFolder(t)
  const keeper = openKeeper(fileCredentialStore(folder))
  keeper.keep(credentials(1))
  fs.writeFileSync(path.join(folder, 'identity.json.new'), 'half a key')
  assert.equal(keeper.keep(credentials(2, 'memory')).persisted, true)
  assert.deepEqual(fs.readdirSync(folder), [])
  assert.equal(keeper.credentials().identity?.current.serial, '2')
})

test('no file is no credentials; a file that is not one is an error that repeats nothing of it', (t) => {
  const folder = tempFolder(t)
  const store = fileCredentialStore(folder)
  assert.deepEqual(store.load(), noCredentials)
  for (const content of [
    '',
    '{',
    '{"version":2}',
    '{"version":1,"identity":{"keyPem":"very secret"},"request":null}',
  ]) {
    fs.writeFileSync(path.join(folder, 'identity.json'), content)
    assert.throws(
      () => store.load(),
      (error: unknown) => error instanceof DamagedCredentials && !error.message.includes('secret'),
    )
  }
})
