// What we say of the status of certificates, read by others: OpenSSL and @peculiar/x509 on our lists, OpenSSL on our
// answers, and we on its questions.

import './pki-reflect-metadata.ts'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { webcrypto } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { before, test, type TestContext } from 'node:test'
import { responderSpec } from '#pki/authority-certificates.ts'
import { buildCrl, type CrlSpec, type RevokedEntry } from '#pki/crl.ts'
import { generateKey, keyHash, type KeyType } from '#pki/keys.ts'
import { buildOcspResponse, ocspError, type AnsweredStatus } from '#pki/ocsp-response.ts'
import { parseOcspRequest } from '#pki/ocsp-request.ts'
import { toPem } from '#pki/pem.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { authority, day, type Held, hierarchy, hold, leaf, nodeOrder, nowMs } from '../vectors/pki-hierarchy.ts'
import { withPeer } from './peer.ts'

// Loaded after the metadata it needs at import.
const x509 = await import('@peculiar/x509')

before(() => x509.cryptoProvider.set(webcrypto))

const second = 1000
const minute = 60 * second
const atTime = ['-attime', String(nowMs / second)]

const setUp = (t: TestContext, type: KeyType = 'p256') => {
  const { root, domainCa, issuing } = hierarchy(type, nowMs - day / 2)
  const leafOf = (name: string): Held => {
    const key = generateKey('ed25519')
    return leaf(key, nodeOrder(key, { uriSans: [`spiffe://example.test/node/${name}`] }), issuing)
  }
  const folder = tempFolder(t)
  const file = (name: string, content: string | Uint8Array): string => {
    fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const pem = (...held: Held[]): string => held.map((one) => toPem('CERTIFICATE', one.certificate.der)).join('')
  const roots = file('roots.pem', pem(root))
  const between = file('between.pem', pem(domainCa, issuing))
  const list = (entries: readonly RevokedEntry[], change: Partial<CrlSpec> = {}): Uint8Array =>
    buildCrl(
      {
        issuer: issuing.certificate.subjectName,
        authorityKeyId: issuing.certificate.subjectKeyId ?? '',
        number: nowMs - minute,
        baseNumber: null,
        thisUpdateMs: nowMs - minute,
        nextUpdateMs: nowMs + 59 * minute,
        entries,
        freshestUrl: 'http://status.example.test/crl/delta.crl',
        ...change,
      },
      issuing.key,
    )
  return { root, domainCa, issuing, leafOf, file, pem, roots, between, list }
}

const run = (openssl: string, args: readonly string[]): { readonly code: number | null; readonly said: string } => {
  const { status, stdout, stderr } = spawnSync(openssl, args, { encoding: 'utf8' })
  return { code: status, said: stdout + stderr }
}

const revokedNow = (held: Held, reason: RevokedEntry['reason'] = 'unspecified'): RevokedEntry => ({
  serial: held.certificate.serial,
  atMs: nowMs - 2 * minute,
  reason,
})

for (const type of ['p256', 'p384', 'ed25519'] as const) {
  test(`OpenSSL verifies against a list signed by a ${type} key: a good certificate passes, a revoked one does not`, (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const { file, leafOf, pem, roots, between, list } = setUp(t, type)
    const [good, bad] = [leafOf('good'), leafOf('bad')]
    const crl = file('full.pem', toPem('X509 CRL', list([revokedNow(bad, 'superseded')])))
    const verify = (held: Held) =>
      run(openssl, [
        ...['verify', '-x509_strict', '-crl_check', '-CRLfile', crl, '-CAfile', roots, '-untrusted', between],
        ...[...atTime, '-no-CApath', '-no-CAstore', file('leaf.pem', pem(held))],
      ])
    assert.equal(verify(good).code, 0, verify(good).said)
    assert.match(verify(bad).said, /certificate revoked/)
    const text = run(openssl, ['crl', '-noout', '-text', '-in', crl]).said
    assert.match(text, /Version 2 \(0x1\)/)
    assert.match(text, /X509v3 CRL Reason Code:\s+Superseded/)
    const number = nowMs - minute
    assert.match(text, new RegExp(`X509v3 CRL Number:\\s+(${number}|0x0?${number.toString(16)})`, 'i'))
  })
}

test('OpenSSL combines a full list with a later delta: what was revoked in between does not pass', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { file, leafOf, pem, roots, between, list } = setUp(t)
  const [good, bad] = [leafOf('good'), leafOf('bad')]
  const full = toPem('X509 CRL', list([]))
  const delta = list([revokedNow(bad)], { number: nowMs, baseNumber: nowMs - minute })
  const both = file('both.pem', full + toPem('X509 CRL', delta))
  const verify = (held: Held, crl: string, ...more: string[]) =>
    run(openssl, [
      ...['verify', '-crl_check', ...more, '-CRLfile', crl, '-CAfile', roots, '-untrusted', between, ...atTime],
      ...['-no-CApath', '-no-CAstore', file('leaf.pem', pem(held))],
    ])
  assert.equal(verify(bad, file('full.pem', full)).code, 0, 'the full one alone does not know')
  assert.equal(verify(good, both, '-extended_crl', '-use_deltas').code, 0)
  assert.match(verify(bad, both, '-extended_crl', '-use_deltas').said, /certificate revoked/)
  const text = run(openssl, ['crl', '-noout', '-text', '-in', file('delta.pem', toPem('X509 CRL', delta))]).said
  assert.match(text, /X509v3 Delta CRL Indicator: critical/)
})

test('@peculiar/x509 reads our list as we wrote it, and finds it signed by the issuer', async (t) => {
  const { leafOf, list, issuing } = setUp(t)
  const entries = ['one', 'two', 'three'].map((name) => revokedNow(leafOf(name), 'key-compromise'))
  const theirs = new x509.X509Crl(Uint8Array.from(list(entries)))
  const ours = new x509.X509Certificate(Uint8Array.from(issuing.certificate.der))
  assert.equal(await theirs.verify({ publicKey: ours }), true)
  const serials = theirs.entries.map(({ serialNumber }) => serialNumber.replace(/^0+/, ''))
  const numbers = serials.map((serial) => BigInt(`0x${serial}`))
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => (a < b ? -1 : 1)),
    'in the order of their numbers',
  )
  assert.deepEqual(serials.toSorted(), entries.map(({ serial }) => serial).toSorted())
  assert.ok(theirs.entries.every(({ reason }) => reason === x509.X509CrlReason.keyCompromise))
  assert.equal(theirs.entries[0]?.revocationDate.getTime(), nowMs - 2 * minute)
  assert.equal(theirs.nextUpdate?.getTime(), nowMs + 59 * minute)
})

test('we read what OpenSSL asks, by SHA-1 and by SHA-256, for several at once, and it reads every answer of ours', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { file, leafOf, pem, roots, between, issuing } = setUp(t)
  const responderKey = generateKey('p256')
  const responder = hold(
    responderKey,
    responderSpec({ ...authority(responderKey, day, nowMs - minute) }, issuing.certificate),
    issuing.key,
  )
  const asked = ['good', 'revoked', 'unknown'].map((name) => ({ name, held: leafOf(name) }))
  const files = asked.map(({ name, held }) => file(`${name}.pem`, pem(held)))
  const issuer = file('issuer.pem', pem(issuing))
  for (const hash of ['sha1', 'sha256'] as const) {
    const request = file('request.der', '')
    const certificates = files.flatMap((one) => ['-cert', one])
    run(openssl, ['ocsp', `-${hash}`, '-issuer', issuer, ...certificates, '-reqout', request])
    const parsed = parseOcspRequest(fs.readFileSync(request))
    assert.equal(parsed.kind, 'ocsp-request', JSON.stringify(parsed))
    const { asked: ids, nonce } = parsed
    assert.deepEqual(
      ids.map(({ serial }) => serial),
      asked.map(({ held }) => held.certificate.serial),
    )
    assert.ok(ids.every((id) => id.hash === hash && id.issuerKeyHash === keyHash(issuing.certificate.spki, hash)))
    assert.ok(nonce !== null)
    const statuses: AnsweredStatus[] = [
      { kind: 'good' },
      { kind: 'revoked', atMs: nowMs - minute, reason: 'cessation-of-operation' },
      { kind: 'unknown' },
    ]
    const response = buildOcspResponse(
      {
        answers: ids.map((id, at) => ({ certId: id.der, status: statuses[at] ?? { kind: 'unknown' } })),
        producedAtMs: nowMs,
        thisUpdateMs: nowMs,
        nextUpdateMs: nowMs + 5 * minute,
        nonce,
      },
      { key: responderKey, certificate: responder.certificate.der },
    )
    const { said, code } = run(openssl, [
      ...[
        'ocsp',
        `-${hash}`,
        '-reqin',
        request,
        '-no_nonce',
        '-respin',
        file('response.der', response),
        '-issuer',
        issuer,
        ...certificates,
      ],
      ...['-CAfile', roots, '-verify_other', between, '-no-CApath', '-no-CAstore', ...atTime],
      // It compares the times with its own clock; -no_nonce keeps it from giving the request another one.
      ...['-validity_period', String(10 * 365 * 24 * 3600)],
    ])
    assert.equal(code, 0, said)
    assert.match(said, /Response verify OK/)
    assert.match(said, /good\.pem: good/)
    assert.match(said, /revoked\.pem: revoked[^]*Reason: cessationOfOperation/)
    assert.match(said, /unknown\.pem: unknown/)
    assert.doesNotMatch(said, /no nonce|Nonce Verify error/i)
  }
  for (const [error, words] of [
    ['malformedRequest', 'malformedrequest'],
    ['internalError', 'internalerror'],
    ['tryLater', 'trylater'],
    ['unauthorized', 'unauthorized'],
  ] as const) {
    const { said } = run(openssl, ['ocsp', '-respin', file('error.der', ocspError(error)), '-noverify'])
    assert.match(said, new RegExp(words, 'i'))
  }
})
