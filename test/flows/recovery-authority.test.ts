// The trust of recovery: its own root, its own keys, over years and on data folders from before there was any.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem, toPem } from '#pki/pem.ts'
import { bookOf } from '#plane/authority/issuer-book.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { day, leafOrder, setUpWithFiles, type Setup } from './authority-setup.ts'

const year = 365 * day

const parsed = (pem: string) => {
  const certificate = parseCertificate(fromPem('CERTIFICATE', pem) ?? new Uint8Array())
  assert(certificate.kind === 'certificate')
  return certificate
}

const splitPem = (chain: string): readonly string[] =>
  (allFromPem('CERTIFICATE', chain) ?? []).map((der) => toPem('CERTIFICATE', der))

const keyFilesOf = (setup: Setup, role: string): readonly string[] =>
  fs.readdirSync(path.join(setup.folder, 'keys')).filter((name) => name.startsWith(`${role}.`))

test('a data folder from before there was recovery gets its root, keys and a journal entry at the next start, once', async (t) => {
  const setup = await setUpWithFiles(t)
  await setup.open()
  assert.deepEqual(keyFilesOf(setup, 'recovery'), [])
  const first = await setup.openRecovery()
  const again = await setup.openRecovery()
  assert.deepEqual(again.roots(), first.roots())
  assert.deepEqual(again.statementKeys(), first.statementKeys())
  const about = { node: 'n1', counter: 3, spki: 'ab' }
  assert.equal(again.bearerFor(about), first.bearerFor(about))
  assert.match(first.bearerFor(about), /^recover_[A-Za-z0-9_-]{43}$/)
  assert.notEqual(first.bearerFor({ ...about, counter: 4 }), first.bearerFor(about))
  assert.ok(again.isOurStatement(Buffer.from('x'), first.signStatement(Buffer.from('x'))))
  assert.ok(!again.isOurStatement(Buffer.from('x'), generateKey('p256').sign(Buffer.from('x'))))
  const created = (await setup.journal('ca.created')).filter(({ body }) => body['role'] === 'recovery')
  assert.equal(created.length, 1)
})

test('a counter is taken with the MAC of this domain or a signature of its statement key, and with nothing else', async (t) => {
  const setup = await setUpWithFiles(t)
  await setup.open()
  const recovery = await setup.openRecovery()
  const other = await (await setUpWithFiles(t)).openRecovery()
  const [counter, changed] = [Buffer.from('counter1.x'), Buffer.from('counter1.y')]
  const seal = recovery.sealCounter(counter)
  assert.equal(seal.length, 32)
  const restarted = await setup.openRecovery()
  assert.ok(restarted.isOurCounter(counter, seal))
  assert.ok(!recovery.isOurCounter(changed, seal))
  assert.ok(!other.isOurCounter(counter, seal))
  for (const length of [0, 31, 33, 64]) assert.ok(!recovery.isOurCounter(counter, Buffer.alloc(length)))
  // As 0.5 made them.
  const signature = recovery.signStatement(counter)
  assert.ok(recovery.isOurCounter(counter, signature))
  assert.ok(!recovery.isOurCounter(changed, signature))
  assert.ok(!other.isOurCounter(counter, signature))
  // A MAC proves nothing to those who check signatures.
  assert.ok(!recovery.isOurStatement(counter, seal))
})

test('while a replica of the release before runs, counters carry a signature, which it can check', async (t) => {
  const setup = await setUpWithFiles(t)
  await setup.open()
  const { store } = setup
  const waits = { schema: 5, newest: 6, waitsFor: ['plane 2 runs 0.5.0'], failure: null }
  let unfinished: ReturnType<typeof store.unfinishedUpgrade> = waits
  Object.assign(store, { unfinishedUpgrade: () => unfinished })
  const recovery = await setup.openRecovery()
  const counter = Buffer.from('counter1.x')
  assert.ok(recovery.isOurStatement(counter, recovery.sealCounter(counter)))
  unfinished = null
  assert.equal(recovery.sealCounter(counter).length, 32)
})

test('the recovery root is another than the root of the runtime, and nothing of the runtime hangs under it', async (t) => {
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const authority = await setup.open()
  const [root] = recovery.roots()
  assert(root !== undefined)
  assert.ok(!authority.roots().includes(root))
  const { subjectKeyId, pathLen, ca, notAfterMs } = parsed(root)
  assert.deepEqual([ca, pathLen], [true, 0])
  assert.ok(notAfterMs - setup.clock.nowMs() > 19 * year)
  const issued = await authority.sign(leafOrder(setup.clock.nowMs(), day))
  assert.notEqual(issued.issuer, subjectKeyId)
  assert.throws(() => authority.chainOf(subjectKeyId ?? ''), /not in the store/)
  const book = bookOf(await setup.store.issuers())
  assert.equal(book.find(subjectKeyId ?? ''), null)
})

test('openssl verifies the chain of the recovery listener by the recovery root, and not by that of the runtime', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const authority = await setup.open()
  const chain = splitPem(recovery.serverIdentity().chainPem)
  assert.equal(chain.length, 2)
  const verify = verifier(t, openssl, setup.clock.nowMs())
  assert.match(verify(recovery.roots(), chain[0] ?? ''), /OK$/)
  assert.throws(() => verify(authority.roots(), chain[0] ?? ''))
  const runtime = splitPem(authority.serverIdentity().chainPem)
  assert.throws(() => verify(recovery.roots(), runtime[0] ?? ''))
})

const verifier = (t: TestContext, openssl: string, atMs: number) => {
  const folder = tempFolder(t)
  return (roots: readonly string[], leaf: string): string => {
    const [rootFile, leafFile] = [path.join(folder, 'roots.pem'), path.join(folder, 'leaf.pem')]
    fs.writeFileSync(rootFile, roots.join(''))
    fs.writeFileSync(leafFile, leaf)
    const at = ['-attime', String(Math.floor(atMs / 1000))]
    const args = ['verify', '-x509_strict', '-purpose', 'sslserver', ...at, '-CAfile', rootFile, leafFile]
    return execFileSync(openssl, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  }
}

test("the listener's certificate is renewed at half life, passed to the listener, and the old key is gone", async (t) => {
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const told: string[] = []
  recovery.onServerIdentity(({ chainPem }) => told.push(chainPem))
  setup.clock.advance(44 * day)
  await recovery.maintain()
  assert.deepEqual(told, [])
  setup.clock.advance(2 * day)
  await recovery.maintain()
  assert.equal(told.length, 1)
  assert.equal(recovery.serverIdentity().chainPem, told[0])
  assert.equal(keyFilesOf(setup, 'recovery-server').length, 1)
  assert.deepEqual(
    (await setup.journal('server_certificate.issued')).map(({ body }) => [body['purpose'], body['why']]),
    [
      ['recovery', 'first one'],
      ['recovery', 'half life'],
    ],
  )
})

test('over thirty years no operator has to act: machines get the next root ten years before the old one ends', async (t) => {
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const [first] = recovery.roots()
  const wrong: string[] = []
  for (let passed = 0; passed < 30 * 365; passed += 40) {
    const presentedBy = splitPem(recovery.serverIdentity().chainPem)[1] ?? ''
    if (!recovery.roots().includes(presentedBy)) wrong.push(`day ${passed}: the root presented is given to nobody`)
    if (recovery.serverIdentity().notAfterMs - setup.clock.nowMs() < 40 * day) wrong.push(`day ${passed}: too old`)
    // A machine that was off since the first day knows the first one only.
    if (passed < 19 * 365 && presentedBy !== first) wrong.push(`day ${passed}: an old machine could not recover`)
    setup.clock.advance(40 * day)
    await recovery.maintain()
  }
  assert.deepEqual(wrong, [])
  const created = (await setup.journal('ca.created')).filter(({ body }) => body['role'] === 'recovery')
  assert.deepEqual(
    created.map(({ body }) => body['why']),
    ['first one', 'half life', 'half life'],
  )
})

test('L5: a recovery root whose key is lost has no successor until a person asks for one', async (t) => {
  const setup = await setUpWithFiles(t)
  const before = await setup.openRecovery()
  for (const name of [...keyFilesOf(setup, 'recovery'), ...keyFilesOf(setup, 'recovery-server')]) {
    fs.rmSync(path.join(setup.folder, 'keys', name))
  }
  await assert.rejects(setup.openRecovery(), { code: 'KEY_MISSING' })
  assert.deepEqual(keyFilesOf(setup, 'recovery'), [])
  const after = await setup.openRecovery(['recovery'])
  assert.equal(after.roots().length, 2)
  assert.equal(after.roots()[1], before.roots()[0])
  assert.equal(splitPem(after.serverIdentity().chainPem)[1], after.roots()[0])
})

test("L5: a lost statement key is replaced only on an operator's order, which is journaled and shown", async (t) => {
  const setup = await setUpWithFiles(t)
  const first = await setup.openRecovery()
  assert.deepEqual(first.warnings(), [])
  for (const name of keyFilesOf(setup, 'statement')) fs.rmSync(path.join(setup.folder, 'keys', name))
  await assert.rejects(setup.openRecovery(), { code: 'KEY_MISSING' })
  assert.deepEqual(keyFilesOf(setup, 'statement'), [])
  const second = await setup.openRecovery(['statement'])
  assert.notDeepEqual(second.statementKeys(), first.statementKeys())
  const authority = await setup.open({}, undefined, second)
  assert.ok(authority.view().warnings.some((warning) => /signs statements was gone .* repair-bundle/.test(warning)))
  const made = (await setup.journal('ca.created')).filter(({ body }) => body['role'] === 'statement')
  assert.deepEqual(
    made.map(({ body }) => body['why']),
    ['first one', 'key gone'],
  )
  assert.deepEqual((await setup.openRecovery()).warnings(), [])
})

test('operators see the recovery root beside the others, and an alert a year before its end', async (t) => {
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const authority = await setup.open({}, undefined, recovery)
  const shown = authority.view().authorities.filter(({ role }) => role === 'recovery')
  assert.deepEqual(
    shown.map(({ signing, custody }) => [signing, custody]),
    [[true, 'file']],
  )
  const warned = (): boolean => authority.view().warnings.some((warning) => warning.includes('recovery root'))
  assert.ok(!warned())
  setup.clock.advance(19 * year + 10 * day)
  await recovery.maintain()
  assert.ok(warned())
})

test('no secret of recovery is in the store, and every key file is sealed', async (t) => {
  const setup = await setUpWithFiles(t)
  const recovery = await setup.openRecovery()
  const token = recovery.bearerFor({ node: 'n1', counter: 1, spki: 'ab' })
  const keys = path.join(setup.folder, 'keys')
  for (const name of fs.readdirSync(keys)) {
    assert.match(fs.readFileSync(path.join(keys, name), 'utf8'), /^muster-sealed-1:/)
  }
  const database = fs.readdirSync(setup.folder).filter((name) => name.startsWith('muster.db'))
  assert.ok(database.length > 0)
  for (const name of database) {
    const bytes = fs.readFileSync(path.join(setup.folder, name))
    assert.ok(!bytes.includes('PRIVATE KEY') && !bytes.includes(token))
  }
})
