// The ceremony with an offline root: request, sign elsewhere, import.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { issuingSpec, rootSpec } from '#pki/authority-certificates.ts'
import { generateKey, loadPrivateKey } from '#pki/keys.ts'
import { parseCsr } from '#pki/csr.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import type { NewAuthority } from '#plane/authority/create-authority.ts'
import { signIntermediate } from '#plane/authority/sign-intermediate.ts'
import { systemRandom } from '#platform/random.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import {
  day,
  leafOrder,
  longestProfileMs,
  operator,
  opensslVerify,
  setUpWithFiles,
  startMs,
  type Setup,
} from './authority-setup.ts'

const year = 365 * day

type Offline = {
  readonly setup: Setup
  readonly safe: string
  sign(requestPem: string, lifetimeMs?: number): Promise<string | Refusal>
}

/** A domain whose root was carried out of the data folder, into `safe`. */
const offline = async (t: TestContext, wanted: Partial<NewAuthority> = {}): Promise<Offline> => {
  const safe = path.join(tempFolder(t), 'safe')
  const setup = await setUpWithFiles(t, { ...wanted, rootOut: safe })
  const sign = (requestPem: string, lifetimeMs = 5 * year): Promise<string | Refusal> =>
    signIntermediate({
      rootKey: loadPrivateKey(fs.readFileSync(path.join(safe, 'root.key'), 'utf8')),
      rootCertificatePem: fs.readFileSync(path.join(safe, 'root.crt'), 'utf8'),
      requestPem,
      lifetimeMs,
      nowMs: setup.clock.nowMs(),
      random: systemRandom,
    })
  return { setup, safe, sign }
}

const text = (value: string | Refusal): string => {
  if (typeof value === 'string') return value
  assert.fail(`refused: ${value.detail}`)
}

test('the root key goes where it was asked to, readable by its owner alone, and not into the data folder', async (t) => {
  const { setup, safe } = await offline(t)
  assert.equal(setup.rootKeyFile, path.join(safe, 'root.key'))
  assert.equal(fs.statSync(path.join(safe, 'root.key')).mode & 0o777, 0o600)
  assert.deepEqual(setup.keyFiles(), ['issuing'])
  const authority = await setup.open()
  assert.equal(authority.view().root_online, false)
  assert.equal(authority.view().authorities.find(({ role }) => role === 'root')?.custody, 'offline')
})

test('a root key that is there already is never overwritten', async (t) => {
  const { safe } = await offline(t)
  const before = fs.readFileSync(path.join(safe, 'root.key'), 'utf8')
  await assert.rejects(setUpWithFiles(t, { rootOut: safe }), /is there already/)
  assert.equal(fs.readFileSync(path.join(safe, 'root.key'), 'utf8'), before)
})

test('request, sign and import put a new intermediate into service, and old leaves stay verifiable', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  for (const issuerKey of ['file', 'memory'] as const) {
    const { setup, sign } = await offline(t, { issuerKey })
    const authority = await setup.open()
    const old = await authority.sign(leafOrder(startMs))
    setup.clock.advance(day)
    const request = text(await authority.request(operator))
    assert.equal(await authority.importIssued(text(await sign(request)), operator), undefined)
    const leaf = await authority.sign(leafOrder(setup.clock.nowMs()))
    assert.notEqual(leaf.issuer, old.issuer)
    for (const one of [leaf, old]) {
      assert.match(opensslVerify(t, openssl, authority, one, setup.clock.nowMs()), /: OK$/)
    }
    const again = await setup.open()
    assert.match(opensslVerify(t, openssl, again, leaf, setup.clock.nowMs()), /: OK$/)
    const kept = issuerKey === 'file' ? ['issuing', 'retired', 'server'] : ['domain-ca', 'server']
    assert.deepEqual(setup.keyFiles(), kept)
  }
})

test('a repeated request is the same request, after a restart too', async (t) => {
  const { setup } = await offline(t)
  const authority = await setup.open()
  const first = await authority.request(operator)
  assert.equal(await authority.request(operator), first)
  assert.equal(await (await setup.open()).request(operator), first)
  assert.equal((await setup.journal('ca.requested')).length, 3)
})

test('an import that is repeated changes nothing and is no error', async (t) => {
  const { setup, sign } = await offline(t)
  const authority = await setup.open()
  const certificate = text(await sign(text(await authority.request(operator))))
  await authority.importIssued(certificate, operator)
  assert.equal(await authority.importIssued(certificate, operator), undefined)
  assert.equal((await setup.journal('ca.rotated')).length, 1)
})

test('a crash between import and clean-up leaves no request that was answered already', async (t) => {
  const { setup, sign } = await offline(t)
  const authority = await setup.open()
  const request = text(await authority.request(operator))
  const [pending] = fs.readdirSync(path.join(setup.folder, 'keys')).filter((name) => name.startsWith('request'))
  const file = path.join(setup.folder, 'keys', pending!)
  const content = fs.readFileSync(file)
  await authority.importIssued(text(await sign(request)), operator)
  fs.writeFileSync(file, content)
  assert.notEqual(await (await setup.open()).request(operator), request)
})

test('without the root, rotate says what to do instead', async (t) => {
  const { setup } = await offline(t)
  const refusal = await (await setup.open()).rotate(operator)
  assert.ok(isRefusal(refusal) && refusal.code === 'CA_ROOT_OFFLINE')
})

test('an operator rotates memory issuers though the root is offline', async (t) => {
  const { setup } = await offline(t, { issuerKey: 'memory' })
  const authority = await setup.open()
  const before = await authority.sign(leafOrder(startMs))
  assert.equal(await authority.rotate(operator), undefined)
  assert.notEqual((await authority.sign(leafOrder(startMs))).issuer, before.issuer)
})

test('what does not answer the request is refused, each for its own reason', async (t) => {
  const { setup, safe, sign } = await offline(t)
  const authority = await setup.open()
  const good = text(await sign(text(await authority.request(operator))))
  const csr = parseCsr(text(await authority.request(operator)))
  assert.ok(csr.kind === 'csr')
  const root = parseCertificate(fromPem('CERTIFICATE', fs.readFileSync(path.join(safe, 'root.crt'), 'utf8'))!)
  assert.ok(root.kind === 'certificate')
  const rootKey = loadPrivateKey(fs.readFileSync(path.join(safe, 'root.key'), 'utf8'))
  const asked = {
    domain: 'test.example',
    spki: csr.spki,
    serial: systemRandom.bytes(16),
    nowMs: startMs,
    lifetimeMs: 5 * year,
  }
  const spec = issuingSpec(asked, root)
  const pem = (changes: Partial<typeof spec>, key = rootKey): string =>
    toPem('CERTIFICATE', buildCertificate({ ...spec, ...changes }, key))
  const { extensions } = spec

  const strangerKey = generateKey('p256')
  const stranger = rootSpec({ ...asked, spki: strangerKey.spki, pathLen: 2 })
  const cases: [string, RegExp][] = [
    ['nonsense', /not one PEM block/],
    [good + good, /not one PEM block/],
    [pem({ spki: generateKey('p256').spki }), /key is not the one this plane asked for/],
    [pem({}, strangerKey), /not signed by the root/],
    [pem({ issuer: stranger.subject }, strangerKey), /names another issuer/],
    [pem({ extensions: { ...extensions, ca: null } }), /not a CA certificate/],
    [pem({ extensions: { ...extensions, ca: { pathLen: 1 } } }), /path length is 1 where 0 is needed/],
    [pem({ extensions: { ...extensions, ca: { pathLen: null } } }), /path length is absent/],
    [pem({ extensions: { ...extensions, keyUsage: ['digitalSignature'] } }), /key usage/],
    [pem({ extensions: { ...extensions, extendedKeyUsage: ['clientAuth'] } }), /extended key usage/],
    [pem({ notBeforeMs: startMs + day }), /valid only from/],
    [pem({ notAfterMs: root.notAfterMs + day }), /outlives the root/],
    [pem({ notAfterMs: startMs + 80 * day }), /before the longest certificate/],
  ]
  for (const [certificate, why] of cases) {
    const refusal = await authority.importIssued(certificate, operator)
    assert.ok(isRefusal(refusal) && refusal.code === 'CA_REQUEST_INVALID', String(why))
    assert.match(refusal.detail ?? '', why)
  }
  assert.equal((await setup.journal('ca.rotated')).length, 0)
  assert.equal(await authority.importIssued(good, operator), undefined)
})

test('an import that was not requested is refused', async (t) => {
  const { setup, sign } = await offline(t)
  const other = await offline(t)
  const request = text(await (await other.setup.open()).request(operator))
  const refusal = await (await setup.open()).importIssued(text(await sign(request)), operator)
  assert.ok(isRefusal(refusal) && /made no request/.test(refusal.detail ?? ''))
})

test('the offline half refuses a key of another root, a request that is none, and a root without room', async (t) => {
  const [one, other] = [await offline(t), await offline(t, { rootPathLen: 1 })]
  const request = text(await (await one.setup.open()).request(operator))
  const mixed = await signIntermediate({
    rootKey: loadPrivateKey(fs.readFileSync(path.join(other.safe, 'root.key'), 'utf8')),
    rootCertificatePem: fs.readFileSync(path.join(one.safe, 'root.crt'), 'utf8'),
    requestPem: request,
    lifetimeMs: year,
    nowMs: startMs,
    random: systemRandom,
  })
  assert.ok(isRefusal(mixed) && /not that of the root certificate/.test(mixed.detail ?? ''))
  const none = await one.sign('nonsense')
  assert.ok(isRefusal(none) && /the request/.test(none.detail ?? ''))
  const memory = await offline(t, { issuerKey: 'memory' })
  const room = await other.sign(text(await (await memory.setup.open()).request(operator)))
  assert.ok(isRefusal(room) && /leaves no room for a domain-ca/.test(room.detail ?? ''))
})

test('with an offline root the warnings start at half life, are journaled once a day, and end with an import', async (t) => {
  for (const issuerKey of ['file', 'memory'] as const) {
    const { setup, sign } = await offline(t, { issuerKey, intermediateLifetimeMs: year })
    const authority = await setup.open()
    const aging = () => authority.view().warnings.filter((warning) => warning.includes('root is offline'))
    setup.clock.advance(180 * day)
    await authority.maintain(longestProfileMs)
    assert.deepEqual(aging(), [])
    setup.clock.advance(5 * day)
    for (let hours = 0; hours < 48; hours += 6) {
      await authority.maintain(longestProfileMs)
      setup.clock.advance(6 * 3_600_000)
    }
    assert.match(aging()[0] ?? '', /past half its life; the root is offline: muster ca request/)
    const told = await setup.journal('ca.aging')
    assert.equal(told.length, 2)
    await (await setup.open()).maintain(longestProfileMs)
    setup.clock.advance(3_600_000)
    await (await setup.open()).maintain(longestProfileMs)
    assert.ok((await setup.journal('ca.aging')).length <= 3)

    const current = await setup.open()
    await current.importIssued(text(await sign(text(await current.request(operator)))), operator)
    assert.deepEqual(
      current.view().warnings.filter((warning) => warning.includes('offline')),
      [],
    )
  }
})

test('a plane whose only intermediate has ended still starts, says so, and is repaired by the ceremony', async (t) => {
  const { setup, sign } = await offline(t, { intermediateLifetimeMs: year })
  await setup.open()
  setup.clock.advance(2 * year)
  await setup.store.forget(setup.clock.nowMs())
  const authority = await setup.open()
  await authority.maintain(longestProfileMs)
  await assert.rejects(authority.sign(leafOrder(setup.clock.nowMs())), /has expired/)
  assert.match(authority.view().warnings.join('\n'), /ended .*root is offline[^]*No issuing CA can sign now/)
  assert.equal(authority.longestLeafMs(), 0)

  let presented = 0
  authority.onServerIdentity(() => presented++)
  await authority.importIssued(text(await sign(text(await authority.request(operator)))), operator)
  assert.equal(presented, 1)
  assert.ok(authority.serverIdentity().notAfterMs > setup.clock.nowMs() + 89 * day)
  assert.equal(
    (await authority.sign(leafOrder(setup.clock.nowMs()))).notAfterMs,
    setup.clock.nowMs() + longestProfileMs,
  )
})
