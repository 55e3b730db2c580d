// A real step-ca signs what is ordered, exactly, by both provisioners; and what it must not take, it refuses.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { type OrderDraft } from '#domain/core/certificate.ts'
import { serialBytes, serialOf } from '#domain/issuers/serial.ts'
import { openIssuerClient } from '#plane/outside/issuer-client.ts'
import type { Attempt, OutsideSigner, Returned } from '#plane/issuers/outside-signer.ts'
import { makeRenewalCredential, makeRenewalRoot } from '#plane/issuers/renewal-credential.ts'
import { signThere, type StepCa } from '#plane/issuers/step-ca-calls.ts'
import { type Provisioner, signToken } from '#plane/issuers/step-ca-token.ts'
import { readRequestNames } from '#pki/csr.ts'
import type { KeyType, PrivateKey } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { judgeReturned } from '#pki/returned-certificate.ts'
import { isoTime, systemClock } from '#platform/clock.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hierarchy, leaf } from '../vectors/pki-hierarchy.ts'
import { withPeer } from './peer.ts'
import { lifetimeMs, orderFor, requestOf, signerOf, startStepCa, type StepCaServer } from './step-ca.ts'

const never = new AbortController().signal
const newSerial = (): string => serialOf(systemRandom.bytes(serialBytes))

const started = async (t: TestContext): Promise<StepCaServer | null> => {
  const binary = withPeer(t, 'step-ca')
  return binary === null ? null : startStepCa(t, binary)
}

const rootOf = ({ files }: StepCaServer): Uint8Array => fromPem('CERTIFICATE', files.root) ?? assert.fail('no PEM')

type Ordered = { readonly attempt: Attempt; readonly key: PrivateKey; readonly serial: string }

const ordered = (
  purpose: Attempt['purpose'],
  {
    type = 'p256',
    name = 'gpu-001',
    change = {},
  }: { type?: KeyType; name?: string; change?: Partial<OrderDraft> } = {},
): Ordered => {
  const { key, request } = requestOf(name, type)
  const serial = newSerial()
  return { attempt: { order: orderFor(key.spki, change), kind: 'nodes', purpose, request, serial }, key, serial }
}

const signed = async (signer: OutsideSigner, { attempt }: Ordered): Promise<Returned> => {
  const outcome = await signer.sign(attempt, never)
  return outcome.kind === 'returned' ? outcome : assert.fail(`${outcome.kind}: ${outcome.why}`)
}

const judged = (server: StepCaServer, { attempt: { order }, serial }: Ordered, { chain }: Returned) =>
  judgeReturned({
    order,
    chain,
    roots: [rootOf(server)],
    withdrawn: [],
    serial,
    isOnRecord: false,
    answeredAtMs: Date.now(),
    clock: { aheadMs: null, toleranceMs: 0 },
    leastLifetimeMs: lifetimeMs / 2,
  })

/** What OpenSSL says of it, after it has verified the chain for clients. */
const asOpensslReads = (t: TestContext, openssl: string, server: StepCaServer, { chain }: Returned): string => {
  const folder = tempFolder(t)
  const file = (name: string, ders: readonly Uint8Array[]): string => {
    fs.writeFileSync(path.join(folder, name), ders.map((der) => toPem('CERTIFICATE', der)).join(''))
    return path.join(folder, name)
  }
  const [leafDer, ...above] = chain
  const leafFile = file('leaf.pem', [leafDer ?? assert.fail('no leaf')])
  const files = ['-CAfile', file('root.pem', [rootOf(server)]), '-untrusted', file('above.pem', above)]
  const verify = spawnSync(openssl, ['verify', '-x509_strict', '-purpose', 'sslclient', ...files, leafFile])
  assert.equal(verify.status, 0, verify.stderr.toString())
  const options = [
    '-noout',
    '-subject',
    '-nameopt',
    'RFC2253',
    '-serial',
    '-ext',
    'subjectAltName,keyUsage,extendedKeyUsage',
  ]
  return spawnSync(openssl, ['x509', '-in', leafFile, ...options], { encoding: 'utf8' }).stdout
}

test('both provisioners sign exactly what was ordered, for each type of key', async (t) => {
  const openssl = withPeer(t, 'openssl')
  const server = await started(t)
  if (server === null || openssl === null) return
  const signer = signerOf(t, server)
  for (const purpose of ['enrollment', 'renewal', 'recovery'] as const)
    for (const type of ['p256', 'p384', 'ed25519'] as const) {
      const it = ordered(purpose, { type })
      const returned = await signed(signer, it)
      const verdict = judged(server, it, returned)
      assert.ok(verdict.kind === 'as-ordered', JSON.stringify(verdict))
      assert.deepEqual([verdict.leaf.serial, verdict.shortByMs], [it.serial, 0])
      if (type !== 'p256') continue
      const text = asOpensslReads(t, openssl, server, returned)
      assert.match(text, /subject=CN=gpu-001,OU=nodes,O=Example\\, \\<Inc\\> & Co\n/)
      assert.match(text, new RegExp(`serial=${it.serial}\n`, 'i'))
      assert.match(text, /Key Usage: critical\n\s+Digital Signature\n/)
      assert.match(text, /Extended Key Usage: \n\s+TLS Web Client Authentication\n/)
      const names = /Subject Alternative Name: \n\s+(.*)\n/.exec(text)?.[1]?.split(', ').toSorted()
      assert.deepEqual(names, [
        'DNS:gpu-001.example.test',
        'IP Address:192.0.2.1',
        'IP Address:2001:DB8:0:0:0:0:0:1',
        'URI:spiffe://example.test/node/gpu-001',
      ])
    }
})

test('an order without organization and alternative names gets none, and one for servers is for servers', async (t) => {
  const server = await started(t)
  if (server === null) return
  const signer = signerOf(t, server)
  const bare = { subject: { cn: 'gpu-001', o: '', ou: '' }, uriSans: [], dnsSans: [], ipSans: [] }
  for (const change of [bare, { usage: 'server' as const }, { usage: 'both' as const }])
    for (const purpose of ['enrollment', 'renewal'] as const) {
      const it = ordered(purpose, { change })
      assert.equal(judged(server, it, await signed(signer, it)).kind, 'as-ordered', JSON.stringify([purpose, change]))
    }
})

test('the common name of the request makes no difference, and alternative names in it are not sent', async (t) => {
  const server = await started(t)
  const openssl = withPeer(t, 'openssl')
  if (server === null || openssl === null) return
  const signer = signerOf(t, server)
  for (const purpose of ['enrollment', 'renewal'] as const) {
    const it = ordered(purpose, { name: 'root of all evil' })
    assert.equal(judged(server, it, await signed(signer, it)).kind, 'as-ordered')
  }
  const folder = tempFolder(t)
  const [key, request] = [path.join(folder, 'key.pem'), path.join(folder, 'request.der')]
  const names = ['-subj', '/CN=gpu-001', '-addext', 'subjectAltName=DNS:other.example.test']
  const made = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key]
  assert.equal(spawnSync(openssl, [...made, ...names, '-outform', 'DER', '-out', request]).status, 0)
  const attempt = { ...ordered('enrollment').attempt, request: fs.readFileSync(request) }
  const why = 'the request has alternative names; step-ca takes none'
  assert.deepEqual(await signer.sign(attempt, never), { kind: 'unsigned', why })
})

test('a lifetime beyond the maximum is refused with the sentence of step-ca, and nothing is signed', async (t) => {
  const server = await started(t)
  if (server === null) return
  const signer = signerOf(t, server)
  for (const purpose of ['enrollment', 'renewal'] as const) {
    const outcome = await signer.sign(ordered(purpose, { change: { lifetimeMs: 2 * lifetimeMs } }).attempt, never)
    assert.ok(outcome.kind === 'unsigned')
    assert.match(outcome.why, /requested duration of 48h.* is more than the authorized maximum .*\(403\)/)
  }
})

/** The parts of a signer, for tokens that it would not make. */
const partsOf = (t: TestContext, server: StepCaServer): StepCa => {
  const { address, files, provisioner, credential } = server
  const client = openIssuerClient(systemTimers, { address, roots: [files.root], identity: null, mostConnections: 1 })
  cleanup(t, () => client.close())
  return {
    client,
    minting: { clock: systemClock, random: systemRandom, origin: address, rootHash: '00' },
    enrollment: { name: 'muster', key: provisioner.key, known: { by: 'key', id: provisioner.keyId } },
    renewal: () => ({
      name: 'muster-renewal',
      key: credential.key,
      known: { by: 'chain', chain: [credential.certificate.der] },
    }),
  }
}

test('a leaf of a node, a program or a worker is no credential for renewals', async (t) => {
  const server = await started(t)
  if (server === null) return
  const parts = partsOf(t, server)
  const asCredential = (key: PrivateKey, chain: readonly Uint8Array[]) => {
    const by: Provisioner = { name: 'muster-renewal', key, known: { by: 'chain', chain } }
    // Shorter than the leaf: step-ca signs nothing that outlives its credential.
    const change = { subject: { cn: 'other', o: '', ou: '' }, lifetimeMs: lifetimeMs / 2 }
    return signThere(parts, ordered('renewal', { change }).attempt, by, never)
  }
  // Of the step-ca itself.
  const node = ordered('enrollment')
  const { chain } = await signed(signerOf(t, server), node)
  const own = await asCredential(node.key, chain)
  assert.ok(own.kind === 'unsigned' && own.why.endsWith('(401)'), JSON.stringify(own))
  // Of the authorities of the plane. Programs and workers have other roots than nodes.
  for (const usage of ['client', 'both'] as const) {
    const authority = hierarchy('p256', Date.now() - 60_000)
    const { key } = requestOf('gpu-001')
    const held = leaf(key, orderFor(key.spki, { usage }), authority.issuing)
    const above = [authority.issuing, authority.domainCa, authority.root].map(({ certificate }) => certificate.der)
    const outcome = await asCredential(key, [held.certificate.der, ...above])
    assert.ok(outcome.kind === 'unsigned' && outcome.why.endsWith('(401)'), JSON.stringify(outcome))
  }
  // With its own root among `roots`, it would be: the page and `issuer test` warn of that.
  const both = toPem('CERTIFICATE', server.renewalRoot.certificate.der) + server.files.root
  await server.configure(({ authority }) => {
    authority.provisioners[1]['roots'] = Buffer.from(both).toString('base64')
  })
  assert.equal((await asCredential(node.key, chain)).kind, 'returned')
  // Of another renewal root: each issuer has its own.
  const making = { domain: 'example.test', nowMs: Date.now(), random: systemRandom }
  const other = makeRenewalCredential(makeRenewalRoot(making), making)
  const outcome = await asCredential(other.key, [other.certificate.der])
  assert.ok(outcome.kind === 'unsigned' && outcome.why.endsWith('(401)'), JSON.stringify(outcome))
})

test('a token is good once, for one request and for one call', async (t) => {
  const server = await started(t)
  if (server === null) return
  const parts = partsOf(t, server)
  const { attempt, serial } = ordered('enrollment')
  const { order, request } = attempt
  const names = readRequestNames(request)
  assert.ok(names.kind === 'names')
  for (const by of [parts.enrollment, parts.renewal()]) {
    const ott = await signToken(parts.minting, by, { order, serial, request, names })
    const notAfter = isoTime(order.issuedAtMs + order.lifetimeMs)
    const ask = async (csr: Uint8Array, token = ott): Promise<number> => {
      const json = { csr: toPem('CERTIFICATE REQUEST', csr), ott: token, notAfter }
      return (await parts.client.ask({ method: 'POST', path: '/1.0/sign', json }, never)).status
    }
    assert.deepEqual([await ask(request), await ask(request)], [201, 401])
    // For a request of somebody else.
    const another = await signToken(parts.minting, by, { order, serial: newSerial(), request, names })
    assert.equal(await ask(requestOf('gpu-001').request, another), 403)
    const spent = await signToken(parts.minting, by, { order, serial: newSerial(), request, names })
    const json = { serial: '1', ott: spent, passive: true }
    assert.equal((await parts.client.ask({ method: 'POST', path: '/1.0/revoke', json }, never)).status, 401)
  }
})

test('what is revoked twice is revoked, also where it was never signed', async (t) => {
  const server = await started(t)
  if (server === null) return
  const signer = signerOf(t, server)
  const it = ordered('enrollment')
  await signed(signer, it)
  for (const serial of [it.serial, it.serial, newSerial()])
    assert.equal(await signer.revoke(serial, 'key-compromise', never), 'revoked')
  assert.deepEqual(signer.abilities, { takesSerial: true, revokes: true, lists: false })
  assert.equal(await signer.find('', async () => false, never), null)
})

test('a node cannot renew at step-ca past the plane', async (t) => {
  const server = await started(t)
  if (server === null) return
  const it = ordered('enrollment')
  const { chain } = await signed(signerOf(t, server), it)
  const identity = { key: it.key.pkcs8Pem(), cert: chain.map((der) => toPem('CERTIFICATE', der)).join('') }
  const { address, files } = server
  const node = openIssuerClient(systemTimers, { address, roots: [files.root], identity, mostConnections: 1 })
  cleanup(t, () => node.close())
  for (const call of ['/1.0/renew', '/1.0/rekey']) {
    const json = { csr: toPem('CERTIFICATE REQUEST', it.attempt.request) }
    assert.equal((await node.ask({ method: 'POST', path: call, json }, never)).status, 401, call)
  }
})

test('while step-ca is away nothing is sent, and when it is back the same attempt is signed', async (t) => {
  const server = await started(t)
  if (server === null) return
  const signer = signerOf(t, server)
  const it = ordered('enrollment')
  await signed(signer, ordered('enrollment'))
  await server.stop()
  const away = await signer.sign(it.attempt, never)
  assert.ok(away.kind === 'unsent', JSON.stringify(away))
  assert.match(away.why, /no connection \(ECONNREFUSED\)/)
  await assert.rejects(signer.revoke(it.serial, 'unspecified', never), /no connection/)
  await server.start()
  assert.equal(judged(server, it, await signed(signer, it)).kind, 'as-ordered')
})

test('a plane whose clock is 90 s behind that of step-ca takes what it signs, and knows how far the clocks are apart', async (t) => {
  const server = await started(t)
  if (server === null) return
  // Right after its start it takes no token that was made before.
  await server.configure((config) => {
    config.authority['disableIssuedAtCheck'] = true
  })
  const behindMs = 90_000
  const nowMs = (): number => Date.now() - behindMs
  const signer = signerOf(t, server, { clock: { nowMs } })
  const { attempt, serial } = ordered('enrollment', { change: { issuedAtMs: nowMs() } })
  const returned = await signer.sign(attempt, never)
  assert.ok(returned.kind === 'returned', JSON.stringify(returned))
  const judge = (aheadMs: number | null, toleranceMs: number) =>
    judgeReturned({
      ...{ order: attempt.order, chain: returned.chain, roots: [rootOf(server)], withdrawn: [], serial },
      ...{ isOnRecord: false, answeredAtMs: nowMs(), leastLifetimeMs: lifetimeMs / 2 },
      clock: { aheadMs, toleranceMs },
    })
  assert.ok(signer.aheadMs !== null && Math.abs(signer.aheadMs - behindMs) < 20_000, String(signer.aheadMs))
  assert.equal(judge(signer.aheadMs, 300_000).kind, 'as-ordered', JSON.stringify(judge(signer.aheadMs, 300_000)))
  assert.equal(judge(signer.aheadMs, 0).kind, 'violates')
})
