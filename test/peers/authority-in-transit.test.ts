// The authority, its responder and the task signer with their keys in a real Vault's Transit engine, set up as docs/issuers/VAULT.md says.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { verifySignature } from '#pki/keys.ts'
import { systemTimers } from '#platform/timers.ts'
import type { NewAuthority } from '#plane/authority/create-authority.ts'
import { openRootKey, writeRootKey } from '#plane/authority/root-key.ts'
import { makeRootCertificate, makeRequest, signIntermediate } from '#plane/authority/sign-intermediate.ts'
import { openKeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { TransitUnavailable } from '#plane/keys/key-unavailable.ts'
import type { TransitHost } from '#plane/keys/transit-host.ts'
import { systemRandom } from '#platform/random.ts'
import { day, leafOrder, opensslVerify, operator, setUpWithFiles, startMs } from '../flows/authority-setup.ts'
import { manualClock, type ManualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { startPlane } from '../process/start-plane.ts'
import { builtPeer } from './built-peer.ts'
import { peer, suiteWith, withPeer } from './peer.ts'
import { startVault, type VaultPeer } from './vault-server.ts'
import { transitHost } from './vault-set-up.ts'

describe('keys of a plane in Transit', suiteWith(peer('vault')), () => {
  const ends: (() => unknown)[] = []
  const scope = { after: (end: () => unknown) => void ends.push(end) }
  let server: VaultPeer
  let host: TransitHost
  let roots = 0

  before(async () => {
    server = await startVault(scope, await builtPeer('vault'))
    host = await transitHost(scope, server)
  })
  after(async () => {
    for (const end of ends.toReversed()) await end()
  })

  const opened = (t: TestContext, clock: ManualClock = manualClock(Date.now()), vault: TransitHost = host) => {
    const elsewhere = openKeysElsewhere(
      { module: null, vault, pin: null, credentialsFolder: null },
      { clock, timers: systemTimers },
    )
    cleanup(t, () => elsewhere.close())
    return elsewhere
  }

  /** Null after the test has been skipped. */
  const inTransit = async (t: TestContext, wanted: Partial<NewAuthority> = {}) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return null
    const pace = manualClock(Date.now())
    const rootKey = `transit:key=root-${++roots}`
    const setup = await setUpWithFiles(t, { rootKey, caKeyPlace: 'transit', ...wanted }, opened(t, pace))
    return { openssl, pace, setup }
  }

  test('root and issuing CA sign there, are replaced there, and no key of theirs is on the disk', async (t) => {
    const made = await inTransit(t)
    if (made === null) return
    const { setup, openssl } = made
    const authority = await setup.open()
    assert.deepEqual(
      authority
        .view()
        .authorities.map(({ role, custody }) => `${role} ${custody}`)
        .sort(),
      ['issuing transit', 'root transit'],
    )
    const leaf = await authority.sign(leafOrder(startMs))
    assert.match(opensslVerify(t, openssl, authority, leaf, startMs), /: OK$/)
    assert.equal(await authority.rotate(operator), undefined)
    const next = await authority.sign(leafOrder(startMs))
    assert.notEqual(next.issuer, leaf.issuer)
    const outcome = await authority.withdraw({ issuer: next.issuer, reason: 'stolen', by: operator, publish: () => {} })
    assert.ok(!isRefusal(outcome) && outcome.successors.length === 1)
    assert.match(opensslVerify(t, openssl, authority, await authority.sign(leafOrder(startMs)), startMs), /: OK$/)
    const kept = fs.readdirSync(path.join(setup.folder, 'keys')).filter((name) => /^(root|issuing|retired)/.test(name))
    for (const name of kept)
      assert.match(fs.readFileSync(path.join(setup.folder, 'keys', name), 'utf8'), /^transit:key=[\w-]+;version=1\n$/)
  })

  test('a Vault that is stopped keeps no plane from running, and is used again when it is back', async (t) => {
    const made = await inTransit(t)
    if (made === null) return
    const { setup, pace } = made
    const authority = await setup.open()
    const { issuer } = await authority.sign(leafOrder(startMs))
    await server.stop()
    const away = (error: unknown) => error instanceof TransitUnavailable && error.trouble === 'away'
    await assert.rejects(authority.sign(leafOrder(startMs)), away)
    await assert.rejects(authority.rotate(operator), away)
    await authority.maintain(day)
    assert.match(authority.view().warnings.join('\n'), /a key in Transit cannot be used.*vault status/)
    assert.equal((await setup.open()).view().root_online, true)
    await server.start()
    // It is left alone for a moment first.
    await assert.rejects(authority.sign(leafOrder(startMs)), away)
    pace.advance(30_000)
    assert.equal((await authority.sign(leafOrder(startMs))).issuer, issuer)
    assert.deepEqual((await setup.custody()).elsewhere.troubles(), [])
  })

  test('while its root cannot sign, a new issuing CA costs one key there, however often it is tried', async (t) => {
    const made = await inTransit(t)
    if (made === null) return
    const { setup, pace } = made
    const authority = await setup.open()
    const keys = async (): Promise<number> =>
      ((await server.call('LIST', 'muster-transit/keys')).body as { data: { keys: string[] } }).data.keys.length
    const before = await keys()
    const root = `muster-transit/keys/root-${roots}`
    await server.call('POST', `${root}/config`, { deletion_allowed: true })
    await server.call('DELETE', root)
    const gone = (error: unknown) => error instanceof TransitUnavailable && /it is gone/.test(error.message)
    for (let time = 0; time < 3; time++) {
      await assert.rejects(authority.rotate(operator), gone)
      pace.advance(60_000)
    }
    const issuing = authority.view().authorities.find(({ role }) => role === 'issuing') ?? assert.fail()
    const withdrawal = { issuer: issuing.id, reason: 'stolen', by: operator, publish: () => {} }
    await assert.rejects(authority.withdraw(withdrawal), gone)
    // The root, and the one that waits for it.
    assert.equal(await keys(), before - 1 + 1)
  })

  test('the ceremony with a root in Transit that no plane ever had', async (t) => {
    const elsewhere = opened(t)
    const place = 'transit:key=ceremony'
    const root = await writeRootKey(place, elsewhere)
    assert.ok(root.kind === 'key' && !root.wasThere)
    const again = await writeRootKey(place, elsewhere)
    assert.ok(again.kind === 'key' && again.wasThere)
    const making = { nowMs: Date.now(), random: systemRandom, lifetimeMs: 900 * day }
    const made = await makeRootCertificate({ ...making, key: root.key, domain: 'test.example', pathLen: 1 })
    const [issuing] = [await elsewhere.make('transit:key=below', 'p256')]
    const rootKey = await openRootKey(place, elsewhere, () => assert.fail('no file is read'))
    const requestPem = await makeRequest(issuing, 'issuing')
    const signed = await signIntermediate({ ...making, rootKey, rootCertificatePem: made.pem, requestPem })
    assert.ok(typeof signed === 'string' && signed.startsWith('-----BEGIN CERTIFICATE-----'), JSON.stringify(signed))
  })

  test('what cannot be used says why: no key, no right, a secret that is refused until its file is put right', async (t) => {
    const clock = manualClock(Date.now())
    const secretFile = path.join(path.dirname(host.rootsFile), 'other-token')
    const good = fs.readFileSync(host.secretFile ?? '', 'utf8')
    fs.writeFileSync(secretFile, 'hvs.of-nobody\n', { mode: 0o600 })
    const elsewhere = opened(t, clock, { ...host, secretFile })
    const refused = (trouble: string, shape: RegExp) => (error: unknown) =>
      error instanceof TransitUnavailable && error.trouble === trouble && shape.test(`${error.message} ${error.next}`)
    await assert.rejects(elsewhere.find('transit:key=none'), refused('login', /was refused/))
    assert.ok(!JSON.stringify(elsewhere.troubles()).includes('of-nobody'))
    fs.writeFileSync(secretFile, good)
    clock.advance(30_000)
    await assert.rejects(elsewhere.find('transit:key=none'), refused('key', /there is none/))
    const key = await elsewhere.make('transit:key=once', 'p256')
    assert.ok(verifySignature(key.spki, Buffer.of(1), await key.sign(Buffer.of(1))))
    await assert.rejects(elsewhere.make('transit:key=once', 'p256'), refused('key', /there is one already/))
    const other = elsewhere.signer(key.reference, (await elsewhere.make('transit:key=twice', 'p256')).spki)
    await assert.rejects(async () => other.sign(Buffer.of(1)), refused('key', /not by the key that is on record/))
    fs.chmodSync(secretFile, 0o644)
    await assert.rejects(
      opened(t, clock, { ...host, secretFile }).find('transit:key=once'),
      refused('settings', /chmod/),
    )
    const elsewhereMount = opened(t, clock, { ...host, mount: 'sys' })
    await assert.rejects(elsewhereMount.make('transit:key=x', 'p256'), refused('key', /permission denied/))
  })

  test('more than 64 requests do not wait for Vault', async (t) => {
    const elsewhere = opened(t)
    const key = await elsewhere.make('transit:key=many', 'p256')
    const many = await Promise.allSettled(Array.from({ length: 80 }, async () => key.sign(Buffer.of(1))))
    const busy = many.filter((one) => one.status === 'rejected' && one.reason.trouble === 'busy')
    assert.deepEqual([busy.length, many.length - busy.length], [16, 64])
  })

  test('a plane makes all it can in Transit, signs with it, and shows its token to nobody', async (t) => {
    const places = ['--root', `transit:key=root-${++roots}`, '--ca-key', 'transit', '--responder-key', 'transit']
    const vault = ['--vault-address', host.address, '--vault-roots', host.rootsFile, '--vault-transit', host.mount]
    const secret = ['--vault-secret', host.secretFile ?? '', '--task-signer-key', 'transit']
    const plane = await startPlane(t, { args: [...places, ...vault, ...secret] })
    const listed = await server.call('LIST', 'muster-transit/keys')
    const names = (listed.body as { data: { keys: string[] } }).data.keys.map((name) =>
      name.replace(/-[0-9a-f]{16,40}$/, ''),
    )
    for (const name of ['muster-issuing', 'muster-responder', 'muster-task-signer'])
      assert.ok(names.includes(name), name)
    const rotated = await plane.api('POST', '/v1/ca/rotate')
    assert.equal(rotated.status, 200, JSON.stringify(rotated.body))
    const token = fs.readFileSync(host.secretFile ?? '', 'utf8').trim()
    const seen = [plane.stdout(), plane.stderr(), fs.readFileSync(`/proc/${plane.pid}/cmdline`, 'utf8')].join()
    assert.ok(!seen.includes(token))
    await server.stop()
    const refused = await plane.api('POST', '/v1/ca/rotate')
    assert.deepEqual([refused.status, refused.body.code], [503, 'TRANSIT_UNAVAILABLE'])
    await server.start()
  })
})
