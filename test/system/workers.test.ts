// Workers on a real plane over real TLS, with tokens as Kubernetes makes them and a key server of its own: who becomes one, what its
// certificate is good for, and what takes it away.

import assert from 'node:assert/strict'
import { randomUUID, X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { nodeRoutes, type NodeRouteParts } from '#plane/boot/node-routes.ts'
import type { Core } from '#plane/core/core.ts'
import { cluster, type Cluster } from '../fakes/service-accounts.ts'
import { activeNode } from '../process/active-node.ts'
import { startKeyServer, type KeyServer } from '../process/key-server.ts'
import { nodeCall } from '../process/node-call.ts'
import { enrolledWorker, rawWorker } from '../process/raw-worker.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openTlsConnection } from '../process/tls-connection.ts'

type SetUp = { readonly plane: Plane; readonly east: Cluster; readonly keys: KeyServer }

const setUp = shared<SetUp>(async (scope) => {
  // Every refusal of an anonymous caller is charged, and this file makes many.
  const plane = await startPlane(scope)
  await plane.api('PATCH', '/v1/domain', { set: { strangersPerMinute: 1000, strangersPerMinutePerSource: 1000 } })
  const east = cluster('RS256', 'https://east.example')
  const keys = await startKeyServer(scope, east)
  const { status, body } = await addIssuer(plane, 'east', east, { jwks_url: keys.url, ca: keys.ca })
  assert.equal(status, 201, JSON.stringify(body))
  return { plane, east, keys }
})

const addIssuer = (plane: Plane, name: string, { iss, aud, sub }: Cluster, keys: object) =>
  plane.api('POST', '/v1/worker-issuers', { name, iss, aud, sub, types: ['run'], vclusters: ['blue'], ...keys })

const csrOf = (key = generateKey('ed25519')): string => makeCsr(key, 'x')

test('a pod becomes a worker by its token: the certificate names it, is for clients only, lasts a day, and has an issuer of its own', async () => {
  const { plane, east } = setUp()
  const worker = await enrolledWorker(await plane.target(), east)
  assert.equal(worker.id(), `east.${worker.pod}`)
  const certificate = worker.certificate()
  assert.equal(
    certificate.subject,
    `CN=worker-provisioning-${worker.pod}\nO=${plane.domain}\nOU=workers`.split('\n').sort().join('\n'),
  )
  assert.equal(certificate.subjectAltName, undefined)
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2'])
  const livesMs = certificate.validToDate.getTime() - certificate.validFromDate.getTime()
  assert.equal(Math.round(livesMs / 60_000), 24 * 60 + 1)
  const { authorities } = (await plane.api('GET', '/v1/ca')).body
  const [, issuerPem] = worker.identity().chainPem.split(/(?<=-----END CERTIFICATE-----\n)/)
  const issuer = new X509Certificate(issuerPem ?? '')
  assert.ok(certificate.checkIssued(issuer))
  const sha256 = issuer.fingerprint256.replaceAll(':', '').toLowerCase()
  assert.deepEqual(
    authorities.filter((one: { sha256: string }) => one.sha256 === sha256).map((one: { role: string }) => one.role),
    ['workers-issuing'],
  )
  const shown = (await plane.api('GET', `/v1/workers/${worker.id()}`)).body
  assert.deepEqual([shown.state, shown.subject, shown.issuer], ['current', east.sub, 'east'])
})

test('every token that is not one of the issuer for us alone is refused', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const other = cluster('RS256', east.iss)
  const hourMs = 3_600_000
  const tokens: readonly [what: string, token: string, code: string][] = [
    ['another audience', east.token({ claims: { aud: ['vault'] } }), 'WORKER_TOKEN_INVALID'],
    ['a second audience', east.token({ claims: { aud: ['muster', 'vault'] } }), 'WORKER_TOKEN_INVALID'],
    ['a longer subject', east.token({ claims: { sub: `${east.sub}-2` } }), 'WORKER_TOKEN_INVALID'],
    ['expired', east.token({ nowMs: Date.now() - 2 * hourMs }), 'WORKER_TOKEN_EXPIRED'],
    ['from the future', east.token({ nowMs: Date.now() + hourMs }), 'WORKER_TOKEN_INVALID'],
    ['longer than a day', east.token({ livesMs: 25 * hourMs }), 'WORKER_TOKEN_INVALID'],
    ['no pod', east.token({ pod: null }), 'WORKER_TOKEN_INVALID'],
    ['unsigned', east.unsigned(), 'WORKER_TOKEN_INVALID'],
    ['the public key as a secret', east.confused(), 'WORKER_TOKEN_INVALID'],
    ['RS256 that calls itself ES256', east.token({ header: { alg: 'ES256' } }), 'WORKER_TOKEN_INVALID'],
    ['the key of another', other.token({ header: { kid: east.keyId } }), 'WORKER_TOKEN_INVALID'],
    ['an unknown key', other.token(), 'WORKER_TOKEN_INVALID'],
    ['no token', 'x', 'WORKER_TOKEN_INVALID'],
  ]
  for (const [what, token, code] of tokens) {
    const { body } = await nodeCall(target, null, 'POST', '/v1/workers/enroll', { token, csr: csrOf() })
    assert.equal(body.code, code, `${what}: ${JSON.stringify(body)}`)
    assert.ok(!JSON.stringify(body).includes(token.slice(0, 40)) || token === 'x', what)
  }
})

test('a request contributes its key and proves it, and keys of other types are refused', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = rawWorker(target, east)
  for (const csr of ['nonsense', csrOf().replace('MI', 'MA'), csrOf(generateKey('p384'))]) {
    const token = east.token({ pod: worker.pod })
    const { body } = await nodeCall(target, null, 'POST', '/v1/workers/enroll', { token, csr })
    assert.equal(body.code, 'CSR_INVALID', JSON.stringify(body))
  }
  assert.equal((await worker.enroll(undefined, generateKey('p256'))).status, 200)
})

test('the first key that comes with a token is the only one for it, also of two that come at the same time', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = rawWorker(target, east)
  const token = east.token({ pod: worker.pod })
  const both = await Promise.all(
    [generateKey('ed25519'), generateKey('ed25519')].map((key) => worker.enroll(token, key)),
  )
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409])
  assert.equal(both.find(({ status }) => status === 409)?.body.code, 'WORKER_TOKEN_USED')

  const again = rawWorker(target, east)
  const its = east.token({ pod: again.pod })
  const first = await again.enroll(its)
  assert.equal((await again.enroll(its)).body.certificate_chain, first.body.certificate_chain)
  assert.equal((await again.enroll(its, generateKey('ed25519'))).body.code, 'WORKER_TOKEN_USED')
  // The next token holds for the key that it came with as well, though the answer is the certificate of before.
  const next = east.token({ pod: again.pod })
  assert.equal((await again.enroll(next)).body.certificate_chain, first.body.certificate_chain)
  assert.equal((await again.enroll(next, generateKey('ed25519'))).body.code, 'WORKER_TOKEN_USED')
  // A container that was started again, has lost its key and gets the next token takes the place of the one before.
  const before = again.identity()
  assert.equal((await again.enroll(undefined, generateKey('ed25519'))).status, 200)
  const renewal = { token: east.token({ pod: again.pod }), csr: csrOf() }
  const stale = await nodeCall(target, before, 'POST', `/v1/workers/${again.id()}/renew`, renewal)
  assert.equal(stale.body.code, 'CLIENT_CERT_DENIED')
})

test('a certificate is renewed with a token of the same pod that holds now, and with no other', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const [worker, neighbour] = [await enrolledWorker(target, east), await enrolledWorker(target, east)]
  assert.equal((await worker.renew(east.token({ pod: neighbour.pod }))).body.code, 'WORKER_TOKEN_OF_ANOTHER')
  const old = east.token({ pod: worker.pod, nowMs: Date.now() - 7_200_000 })
  assert.equal((await worker.renew(old)).body.code, 'WORKER_TOKEN_EXPIRED')
  assert.equal((await worker.renew(undefined, neighbour.key)).body.code, 'KEY_IN_USE')
  const path = `/v1/workers/${neighbour.id()}/renew`
  const asOther = await worker.call('POST', path, { token: east.token({ pod: neighbour.pod }), csr: csrOf() })
  assert.equal(asOther.body.code, 'IDENTITY_MISMATCH')

  const before = worker.identity()
  const key = generateKey('ed25519')
  const token = east.token({ pod: worker.pod })
  const renewed = await worker.renew(token, key)
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body))
  // Its answer was lost: the same request with the certificate before gets the same bytes.
  const repeated = await nodeCall(target, before, 'POST', `/v1/workers/${worker.id()}/renew`, {
    token,
    csr: makeCsr(key, 'x'),
  })
  assert.equal(repeated.body.certificate_chain, renewed.body.certificate_chain)
  // As long as the token is the same, the key may stay.
  assert.equal((await worker.renew(token, key)).status, 200)
})

test('the key of another worker or of a node is certified for no worker', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = await enrolledWorker(target, east)
  assert.equal((await rawWorker(target, east).enroll(undefined, worker.key)).body.code, 'KEY_IN_USE')
})

test('workers call nothing that is for nodes, nodes nothing that is for workers, and strangers neither', async (t) => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = await enrolledWorker(target, east)
  const node = await activeNode(plane, 'gpu-w1')
  const routes = nodeRoutes({} as Core, { limits: {}, channel: {} } as NodeRouteParts)
  let walked = 0
  for (const { method, path, access, kind } of routes) {
    if (access === 'anyone') continue
    const address = path.replace(':worker', worker.id()).replace(':id', 'gpu-w1').replace(/:\w+/g, 'x'.repeat(64))
    const ask = async (identity: typeof node extends { identity(): infer I } ? I | null : never): Promise<string> => {
      const connection = await openTlsConnection(t, target, identity)
      const reply =
        kind === 'upgrade'
          ? await connection.upgrade(address)
          : await connection.call(method as 'GET' | 'POST', address, ...(method === 'GET' ? [] : [{ garbage: 1 }]))
      connection.destroy()
      return reply.body.code
    }
    walked += 1
    if (access === 'worker') {
      assert.equal(await ask(node.identity()), 'WRONG_PRINCIPAL', path)
      assert.equal(await ask(null), 'WORKER_CERT_REQUIRED', path)
    } else assert.equal(await ask(worker.identity()), 'WRONG_PRINCIPAL', path)
  }
  assert.ok(walked > 5)
})

test('a worker that is revoked is refused on its open connection at once, and its pod never comes back', async (t) => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = await enrolledWorker(target, east)
  const connection = await openTlsConnection(t, target, worker.identity())
  const renew = () =>
    connection.call('POST', `/v1/workers/${worker.id()}/renew`, { token: east.token({ pod: worker.pod }), csr: 'x' })
  assert.equal((await renew()).body.code, 'CSR_INVALID')
  const revoked = await plane.api('POST', `/v1/workers/${worker.id()}/revoke`, { reason: 'left the team' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  assert.equal(revoked.body.worker.state, 'revoked')
  assert.notEqual(revoked.body.receipt.effective_at, null)
  assert.equal((await renew()).body.code, 'WORKER_REVOKED')
  assert.equal((await worker.enroll(undefined, generateKey('ed25519'))).body.code, 'WORKER_REVOKED')
  assert.equal(
    (await plane.api('POST', `/v1/workers/${worker.id()}/revoke`, { reason: 'x' })).body.code,
    'WORKER_REVOKED',
  )
  const receipt = (await plane.api('GET', `/v1/receipts/${revoked.body.receipt.id}`)).body
  assert.equal(receipt.node, `worker:${worker.id()}`)
})

test('the workers of an issuer that is removed or is for another subject are refused from then on', async () => {
  const { plane } = setUp()
  const target = await plane.target()
  const west = cluster('ES256', 'https://west.example')
  assert.equal((await addIssuer(plane, 'west', west, { jwks: west.jwks() })).status, 201)
  const worker = await enrolledWorker(target, west)
  assert.equal((await plane.api('PATCH', '/v1/worker-issuers/west', { sub: 'another' })).status, 200)
  assert.equal((await worker.renew()).body.code, 'CLIENT_CERT_DENIED')
  assert.equal((await plane.api('PATCH', '/v1/worker-issuers/west', { sub: west.sub })).status, 200)
  assert.equal((await worker.renew()).status, 200)
  assert.equal((await plane.api('POST', '/v1/worker-issuers/west/remove', {})).status, 200)
  assert.equal((await worker.renew()).body.code, 'CLIENT_CERT_DENIED')
  assert.equal((await worker.enroll()).body.code, 'WORKER_TOKEN_INVALID')
})

test('a worker whose key set is away is told to come back, and the plane asks for it once a minute', async (t) => {
  const { plane } = setUp()
  const north = cluster('ES256', 'https://north.example')
  const keys = await startKeyServer(t, north)
  keys.answer(302)
  const added = await addIssuer(plane, 'north', north, { jwks_url: keys.url, ca: keys.ca })
  assert.match(added.body.keys.trouble, /it answered 302/)
  const worker = rawWorker(await plane.target(), north)
  for (let i = 0; i < 3; i++) {
    const { status, body } = await worker.enroll()
    assert.deepEqual([status, body.code], [503, 'WORKER_KEYS_AWAY'])
    assert.ok(body.retry_after_ms > 0)
  }
  assert.equal(keys.asked(), 1)
})

test('when the authority of workers is withdrawn its certificates are refused, and the next is of another', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const worker = await enrolledWorker(target, east)
  const signing = async (): Promise<string> =>
    (await plane.api('GET', '/v1/ca')).body.authorities.find(
      (one: { role: string; signing: boolean }) => one.role === 'workers-issuing' && one.signing,
    ).id
  const before = await signing()
  const withdrawn = await plane.api('POST', '/v1/ca/withdraw', { issuer: before, reason: 'key leaked' })
  assert.equal(withdrawn.status, 200, JSON.stringify(withdrawn.body))
  assert.equal((await worker.renew()).body.code, 'CLIENT_CERT_DENIED')
  assert.notEqual(await signing(), before)
  assert.equal((await worker.enroll(undefined, generateKey('ed25519'))).status, 200)
  // The nodes have another authority.
  assert.equal((await activeNode(plane, 'gpu-w2')).id(), 'gpu-w2')
})

test('a worker enrols with a good token while its neighbour at the same address brings hundreds of bad ones', async (t) => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const allow = (perMinute: number) =>
    plane.api('PATCH', '/v1/domain', { set: { strangersPerMinute: perMinute, strangersPerMinutePerSource: perMinute } })
  assert.equal((await allow(1)).status, 200)
  const connection = await openTlsConnection(t, target, null)
  const codes = new Map<string, number>()
  for (let at = 0; at < 620; at++) {
    const { body } = await connection.call('POST', '/v1/workers/enroll', { token: `bad.token.${at}`, csr: 'x' })
    codes.set(body.code, (codes.get(body.code) ?? 0) + 1)
  }
  assert.ok((codes.get('RATE_LIMITED') ?? 0) > 600, JSON.stringify([...codes]))
  await enrolledWorker(target, east)
  assert.equal((await allow(1000)).status, 200)
})

test('worker issuers are exported and applied, and the journal has what happened to workers', async () => {
  const { plane, east } = setUp()
  const document = (await plane.api('GET', '/v1/document')).body
  const [listed] = document.workerIssuers.filter(({ name }: { name: string }) => name === 'east')
  assert.deepEqual([listed.iss, listed.sub, listed.types], [east.iss, east.sub, ['run']])
  const again = await plane.api('POST', '/v1/document/plan', { document: { ...document, apiVersion: 'muster/v1' } })
  assert.equal(again.body.plan, null, JSON.stringify(again.body))
  for (const type of [
    'worker.enrolled',
    'worker.renewed',
    'worker.token_bound',
    'worker.revoked',
    'worker.issuer_added',
    'worker.issuer_removed',
  ]) {
    const { entries } = (await plane.api('GET', `/v1/journal?type=${type}`)).body
    assert.ok(entries.length > 0, type)
  }
  const { status, body } = await plane.api('GET', '/v1/workers?issuer=east')
  assert.equal(status, 200, JSON.stringify(body))
  assert.ok(body.workers.length > 1)
  assert.equal((await plane.api('GET', `/v1/workers/east.${randomUUID()}`)).body.code, 'WORKER_NOT_FOUND')
})

test('operators look after workers and their issuers from the command line', async (t) => {
  const { plane, east } = setUp()
  const south = cluster('ES256', 'https://south.example')
  const file = path.join(tempFolder(t), 'jwks.json')
  fs.writeFileSync(file, south.jwks())
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await plane.muster(...args)
    return { code, text: stdout + stderr }
  }
  const add = ['worker-issuer', 'add', 'south', '--iss', south.iss, '--aud', south.aud, '--sub', south.sub]
  assert.match((await run(...add)).text, /Either --jwks-file, or --jwks-url together with --jwks-ca/)
  const keyless = await addIssuer(plane, 'south', south, {})
  assert.match(keyless.body.detail, /its keys are either jwks, or jwks_url together with ca/)
  assert.equal((await run(...add, '--jwks-url', 'https://x/')).code, 2)
  const added = await run(...add, '--jwks-file', file, '--types', 'service,run', '--vclusters', 'blue')
  assert.equal(added.code, 0, added.text)
  assert.match(added.text, /task types +run, service/)
  assert.match((await run(...add, '--jwks-file', file)).text, /WORKER_ISSUER_EXISTS/)
  assert.match((await run('worker-issuer', 'set', 'south', '--types', '')).text, /task types +none/)
  assert.equal((await run('worker-issuer', 'set', 'south')).code, 2)
  assert.match((await run('worker-issuer', 'list')).text, /south .*system:serviceaccount/)
  const worker = await enrolledWorker(await plane.target(), south)
  assert.match((await run('worker', 'list', '--issuer', 'south')).text, new RegExp(`${worker.id()} +current`))
  assert.match((await run('worker', 'show', worker.id())).text, /certificate +[0-9a-f]+, good until/)
  const revoked = await run('worker', 'revoke', worker.id(), '--reason', 'drill')
  assert.deepEqual([revoked.code, /receipt +\w+: effective/.test(revoked.text)], [0, true], revoked.text)
  assert.equal((await run('worker', 'show', `south.${randomUUID()}`)).code, 3)
  assert.equal((await run('worker', 'show', 'south')).code, 2)
  assert.equal((await run('worker-issuer', 'remove', 'south')).code, 0)
  assert.equal((await run('worker-issuer', 'show', 'south')).code, 3)
  assert.match((await run('ca', 'show')).text, /workers-issuing/)
  assert.match((await run('worker-issuer', 'show', 'east')).text, new RegExp(`issuer +${east.iss}`))
})
