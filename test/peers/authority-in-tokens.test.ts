// The authority with its keys in tokens of SoftHSM: it signs, is replaced and withdrawn as with keys in files, and says what is wrong.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { verifySignature } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { Pkcs11Unavailable } from '#platform/pkcs11.ts'
import { systemTimers } from '#platform/timers.ts'
import { newCaKey } from '#plane/authority/authority-state.ts'
import type { NewAuthority } from '#plane/authority/create-authority.ts'
import { findListSigner } from '#plane/authority/list-signer.ts'
import { findResponder } from '#plane/authority/responder.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import { intermediateLifetimeMs } from '#pki/authority-certificates.ts'
import { systemRandom } from '#platform/random.ts'
import { day, leafOrder, opensslVerify, operator, setUpWithFiles, startMs } from '../flows/authority-setup.ts'
import { manualClock, type ManualClock } from '../fakes/manual-clock.ts'
import { newCsr } from '../flows/recovery-setup.ts'
import { setUpOutside } from '../flows/outside-setup.ts'
import { startPlaneHere } from '../process/plane-in-process.ts'
import { cleanup } from '../process/cleanup.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { softTokens, type SoftTokens } from './soft-token.ts'

const rootKey = 'pkcs11:token=vault;object=root'
const caKeyPlace = { token: 'plane', serial: null }

const opened = (t: TestContext, { module, pinFile }: SoftTokens, clock: ManualClock, delayMs = 0) => {
  const elsewhere = openKeysElsewhere(
    { module, vault: null, pin: pinFile, credentialsFolder: null },
    { clock, timers: systemTimers, limits: { delayMs } },
  )
  cleanup(t, () => elsewhere.close())
  return elsewhere
}

/** Null after the test has been skipped. */
const inTokens = async (t: TestContext, wanted: Partial<NewAuthority> = {}) => {
  const tokens = softTokens(t, 'vault', 'plane')
  const openssl = withPeer(t, 'openssl')
  if (tokens === null || openssl === null) return null
  const pace = manualClock(0)
  const setup = await setUpWithFiles(t, { rootKey, caKeyPlace, ...wanted }, opened(t, tokens, pace))
  return { tokens, openssl, pace, setup }
}

const custodies = ({ authorities }: { readonly authorities: readonly { role: string; custody: string }[] }) =>
  authorities.map(({ role, custody }) => `${role} ${custody}`).sort()

test('root and issuing CA sign from tokens, are replaced there, and no key of theirs is on the disk', async (t) => {
  const made = await inTokens(t)
  if (made === null) return
  const { setup, openssl } = made
  const authority = await setup.open()
  assert.deepEqual(custodies(authority.view()), ['issuing pkcs11', 'root pkcs11'])
  const leaf = await authority.sign(leafOrder(startMs))
  assert.match(opensslVerify(t, openssl, authority, leaf, startMs), /: OK$/)

  assert.equal(await authority.rotate(operator), undefined)
  const next = await authority.sign(leafOrder(startMs))
  assert.notEqual(next.issuer, leaf.issuer)
  assert.match(opensslVerify(t, openssl, authority, next, startMs), /: OK$/)
  for (const name of fs
    .readdirSync(path.join(setup.folder, 'keys'))
    .filter((one) => /^(root|issuing|retired)/.test(one)))
    assert.match(fs.readFileSync(path.join(setup.folder, 'keys', name), 'utf8'), /^pkcs11:token=\w+;object=[\w-]+\n$/)
})

test('the lists of an issuing CA in a token are signed there, also once it has retired', async (t) => {
  const made = await inTokens(t)
  if (made === null) return
  const { setup, openssl } = made
  const authority = await setup.open()
  const { issuer } = await authority.sign(leafOrder(startMs))
  await authority.rotate(operator)
  const row = (await setup.store.get('issuer', issuer))?.value ?? assert.fail()
  const signer = findListSigner(await setup.custody(), row) ?? assert.fail('no list can be signed')
  const spec = { number: 1, baseNumber: null, entries: [], freshestUrl: null }
  const der = await signer.sign({ ...spec, thisUpdateMs: startMs, nextUpdateMs: startMs + day })
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'crl.der'), der)
  fs.writeFileSync(path.join(folder, 'ca.pem'), toPem('CERTIFICATE', Buffer.from(row.der, 'base64')))
  const args = ['crl', '-inform', 'DER', '-in', 'crl.der', '-CAfile', 'ca.pem', '-noout', '-verify']
  execFileSync(openssl, args, { cwd: folder, stdio: 'pipe' })
  assert.notEqual(findResponder(await setup.custody(), issuer), null)
})

test('a withdrawn one has its successor in the token, and its reference is gone', async (t) => {
  const made = await inTokens(t)
  if (made === null) return
  const authority = await made.setup.open()
  const { issuer } = await authority.sign(leafOrder(startMs))
  const outcome = await authority.withdraw({ issuer, reason: 'stolen', by: operator, publish: () => {} })
  assert.ok(!isRefusal(outcome) && outcome.successors.length === 1)
  assert.ok(!(await made.setup.custody()).has({ role: 'issuing', id: issuer }))
  const next = await authority.sign(leafOrder(startMs))
  assert.match(opensslVerify(t, made.openssl, authority, next, startMs), /: OK$/)
})

test('issuers in memory hang under a domain CA in a token', async (t) => {
  const made = await inTokens(t, { issuerKey: 'memory' })
  if (made === null) return
  const authority = await made.setup.open()
  assert.deepEqual(custodies(authority.view()), ['domain-ca pkcs11', 'issuing memory', 'root pkcs11'])
  const leaf = await authority.sign(leafOrder(startMs))
  assert.match(opensslVerify(t, made.openssl, authority, leaf, startMs), /: OK$/)
})

test('with its tokens pulled the plane goes on and says so; back again they sign', async (t) => {
  const made = await inTokens(t)
  if (made === null) return
  const { setup, tokens, pace } = made
  const authority = await setup.open()
  const { issuer } = await authority.sign(leafOrder(startMs))
  tokens.pull()
  const away = (error: unknown) =>
    error instanceof Pkcs11Unavailable && /the token \w+ is not there/.test(error.message)
  await assert.rejects(authority.sign(leafOrder(startMs)), away)
  await assert.rejects(authority.rotate(operator), away)
  await authority.maintain(day)
  const { warnings } = authority.view()
  assert.match(warnings.join('\n'), /the token plane is not there.*Insert it/)
  assert.ok(!warnings.join().includes(tokens.pin))
  // As a plane that is started meanwhile.
  assert.equal((await setup.open()).view().root_online, true)
  tokens.putBack()
  pace.advance(30_000)
  assert.equal((await authority.sign(leafOrder(startMs))).issuer, issuer)
})

test('a root in a safe, while its issuing CA is due, keeps no plane from starting and from renewing its own certificate', async (t) => {
  const made = await inTokens(t, { caKeyPlace: null })
  if (made === null) return
  const { setup, tokens, pace } = made
  const authority = await setup.open()
  const { issuer } = await authority.sign(leafOrder(startMs))
  const { chainPem } = authority.serverIdentity()
  tokens.pull()
  // Half of its life is over, and all of that of the certificate.
  setup.clock.advance(intermediateLifetimeMs / 2 + day)
  await authority.maintain(day)
  assert.notEqual(authority.serverIdentity().chainPem, chainPem)
  assert.equal((await authority.sign(leafOrder(setup.clock.nowMs()))).issuer, issuer)
  assert.match(authority.view().warnings.join('\n'), /the token vault is not there/)
  const again = await setup.open()
  await assert.rejects(again.rotate(operator), Pkcs11Unavailable)
  tokens.putBack()
  pace.advance(30_000)
  await authority.maintain(day)
  assert.notEqual((await authority.sign(leafOrder(setup.clock.nowMs()))).issuer, issuer)
})

test('with a token that takes 50 ms a signature, the storm of a profile that another issuer signs is over before its own', async (t) => {
  const tokens = softTokens(t, 'vault', 'plane')
  if (tokens === null) return
  const elsewhere = opened(t, tokens, manualClock(0), 50)
  const { plane } = await setUpOutside(t, { keys: { wanted: { rootKey, caKeyPlace }, elsewhere } })
  const ended: string[] = []
  const enroll = async (node: string, profile: string): Promise<void> => {
    const made = await createToken(plane.deps, plane.deps, { node, profile, replace: false, ttlMs: null }, operator)
    assert.ok(made.kind === 'made', JSON.stringify(made))
    const outcome = await plane.enroll(made.secret, newCsr(), null)
    assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
    ended.push(profile)
  }
  const storm = (profile: string): Promise<unknown> =>
    Promise.all(Array.from({ length: 24 }, (_, index) => enroll(`${profile}-${index}`, profile)))
  await Promise.all([storm('mesh-paas'), storm('gpu-cloud')])
  // 24 signatures of the token take 1.2 s at least. Were they made on the event loop, those of the other issuer would have waited for them.
  const before = ended.slice(0, ended.lastIndexOf('gpu-cloud')).filter((profile) => profile === 'mesh-paas').length
  assert.ok(before < 18, `${before} of 24 certificates by the token before the last one of the other issuer`)
})

test('a PIN that is put right in its file is taken without a restart', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const elsewhere = opened(t, tokens, manualClock(0))
  fs.writeFileSync(tokens.pinFile, '000000')
  const refused = (error: unknown) => error instanceof Pkcs11Unavailable && /refuses the PIN/.test(error.message)
  await assert.rejects(elsewhere.make(rootKey, 'p256'), refused)
  assert.match(JSON.stringify(elsewhere.troubles()), /Put the right PIN into the file/)
  fs.writeFileSync(tokens.pinFile, tokens.pin)
  const { spki, sign } = await elsewhere.make(rootKey, 'p256')
  assert.ok(verifySignature(spki, Buffer.of(1), await sign(Buffer.of(1))))
  assert.deepEqual(elsewhere.troubles(), [])
})

test('while an older release runs, no key of a CA is made in a token', async (t) => {
  const made = await inTokens(t)
  if (made === null) return
  const { store } = made.setup
  const core = { ...(made.setup as unknown as { clock: ManualClock }), random: systemRandom }
  const unfinished = { ...store, unfinishedUpgrade: () => ({ schema: 6, waitsFor: ['0.6.0'] }) }
  const parts = { core: { ...core, store: unfinished }, custody: await made.setup.custody(), options: { caKeyPlace } }
  await assert.rejects(newCaKey(parts as unknown as Parameters<typeof newCaKey>[0], 'issuing'), UpgradeUnfinished)
})

test('two planes use one token, each with keys of its own, and no PIN is on their command lines or in their logs', async (t) => {
  const tokens = softTokens(t, 'shared')
  if (tokens === null) return
  const planes = await Promise.all(
    ['a', 'b'].map((name) => {
      const keys = ['--root', `pkcs11:token=shared;object=root-${name}`, '--ca-key', 'pkcs11:token=shared']
      const token = ['--pkcs11-module', tokens.module, '--pkcs11-pin', tokens.pinFile]
      return startPlane(t, { args: [...keys, ...token], env: tokens.env })
    }),
  )
  for (const plane of planes) {
    const [before, after] = [await plane.api('GET', '/v1/ca'), await plane.api('POST', '/v1/ca/rotate')]
    assert.equal(after.status, 200, JSON.stringify(after.body))
    assert.deepEqual([before.body.root_online, after.body.root_online], [true, true])
    const issuing = after.body.authorities.filter(({ role }: { role: string }) => role === 'issuing')
    assert.deepEqual(
      issuing.map(({ custody }: { custody: string }) => custody),
      ['pkcs11', 'pkcs11'],
    )
    const seen = [plane.stdout(), plane.stderr(), fs.readFileSync(`/proc/${plane.pid}/cmdline`, 'utf8')].join()
    assert.ok(!seen.includes(tokens.pin))
  }
  tokens.pull()
  const [plane] = planes
  const refused = await plane?.api('POST', '/v1/ca/rotate')
  assert.deepEqual([refused?.status, refused?.body.code], [503, 'PKCS11_UNAVAILABLE'])
  assert.match(refused?.body.detail ?? '', /the token shared is not there/)
})

test('a plane whose keys are in a token does not start without the module, and says which', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const data = path.join(tempFolder(t), 'data')
  const given = { root: rootKey, pkcs11Module: tokens.module, pkcs11Pin: tokens.pinFile }
  await (await startPlaneHere(data, given)).stop()
  const refused = (shape: RegExp) => (error: Error & { code?: string; next?: string }) =>
    error.code === 'PKCS11_UNAVAILABLE' && shape.test(`${error.message} ${error.next}`)
  await assert.rejects(startPlaneHere(data, {}), refused(/no PKCS#11 module is named Name the file of the module/))
  const gone = { ...given, pkcs11Module: '/nonexistent/token.so' }
  await assert.rejects(startPlaneHere(data, gone), refused(/\/nonexistent\/token\.so cannot be loaded/))
  // A root whose token is in a safe is no reason not to start.
  tokens.pull()
  await (await startPlaneHere(data, given)).stop()
})
