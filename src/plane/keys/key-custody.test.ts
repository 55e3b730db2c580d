import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { systemRandom } from '#platform/random.ts'
import { openKeyCustody, type KeyCustody } from './key-custody.ts'
import { credentialName, findSealingKey } from './sealing-key.ts'

const folderFor = (t: TestContext): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-custody-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

const find = (data: string, keyFile: string | null = null, credentialsFolder: string | null = null) =>
  findSealingKey({ dataFolder: data, keyFile, credentialsFolder }, systemRandom)

const open = (data: string): KeyCustody => openKeyCustody(path.join(data, 'keys'), find(data))

test('a kept key is found again after a restart, and no other user may read its file', async (t) => {
  const data = folderFor(t)
  await open(data).keep({ role: 'issuing', id: 'ab12' }, 'PEM')
  assert.equal(open(data).find({ role: 'issuing', id: 'ab12' }), 'PEM')
  assert.equal(open(data).find({ role: 'issuing', id: 'ff' }), null)
  const file = path.join(data, 'keys', 'issuing.ab12.key')
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700)
  assert.ok(!fs.readFileSync(file, 'utf8').includes('PEM'))
})

test('keys are listed by name, and files of others in the folder are left alone', async (t) => {
  const data = folderFor(t)
  const custody = open(data)
  await custody.keep({ role: 'root', id: 'aa' }, 'PEM')
  await custody.keep({ role: 'server', id: 'bb.cc' }, 'PEM')
  fs.writeFileSync(path.join(data, 'keys', 'journal.key'), 'not ours')
  assert.deepEqual(custody.names(), [
    { role: 'root', id: 'aa' },
    { role: 'server', id: 'bb.cc' },
  ])
  await custody.drop({ role: 'root', id: 'aa' })
  assert.equal(custody.has({ role: 'root', id: 'aa' }), false)
})

test('two sealed files that were swapped are both refused', async (t) => {
  const data = folderFor(t)
  const custody = open(data)
  await custody.keep({ role: 'issuing', id: 'aa' }, 'one')
  await custody.keep({ role: 'issuing', id: 'bb' }, 'two')
  const [a, b] = ['issuing.aa.key', 'issuing.bb.key'].map((name) => path.join(data, 'keys', name)) as [string, string]
  fs.renameSync(a, `${a}.kept`)
  fs.renameSync(b, a)
  fs.renameSync(`${a}.kept`, b)
  assert.throws(() => custody.find({ role: 'issuing', id: 'aa' }), /altered, or is another file/)
  assert.throws(() => custody.find({ role: 'issuing', id: 'bb' }), /altered, or is another file/)
})

test('without a sealing key one is made beside the data, used again, and reported as unprotected', (t) => {
  const data = folderFor(t)
  const first = find(data)
  assert.equal(first.protection, 'beside')
  assert.equal(fs.statSync(path.join(data, 'seal.key')).mode & 0o777, 0o600)
  assert.equal(find(data).key.id, first.key.id)
})

test('a sealing key in a file elsewhere protects; one inside the data folder, or that others may read, does not', (t) => {
  const [data, elsewhere] = [folderFor(t), folderFor(t)]
  for (const [folder, name, mode, protection] of [
    [elsewhere, 'my.key', 0o600, 'protected'],
    [elsewhere, 'open.key', 0o640, 'group'],
    [data, 'my.key', 0o600, 'beside'],
  ] as const) {
    const file = path.join(folder, name)
    fs.writeFileSync(file, '0f'.repeat(32) + '\n', { mode })
    assert.equal(find(data, file).protection, protection)
  }
  assert.ok(!fs.existsSync(path.join(data, 'seal.key')))
})

test('a systemd credential is used where there is one', (t) => {
  const [data, credentials] = [folderFor(t), folderFor(t)]
  assert.equal(find(data, null, credentials).protection, 'beside')
  fs.writeFileSync(path.join(credentials, credentialName), '0f'.repeat(32))
  assert.equal(find(data, null, credentials).protection, 'protected')
})

test('a sealing key that was named and is missing or malformed is an error that repeats none of it', (t) => {
  const data = folderFor(t)
  assert.throws(() => find(data, path.join(data, 'gone')), /there is no sealing key at/)
  const file = path.join(data, 'bad')
  fs.writeFileSync(file, 'hunter2')
  assert.throws(
    () => find(data, file),
    (error: Error) => /64 hexadecimal digits/.test(error.message) && !error.message.includes('hunter2'),
  )
})
