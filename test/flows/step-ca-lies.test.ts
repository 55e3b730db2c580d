// A step-ca that lies. Nothing of it is taken for an answer that it is not, and what it says of itself is bounded.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { OrderDraft } from '#domain/core/certificate.ts'
import { decimalSerial, serialOf } from '#domain/issuers/serial.ts'
import { IssuerFault, type IssuerFaultCode } from '#plane/outside/issuer-client.ts'
import { AnotherSerial, type Attempt } from '#plane/issuers/outside-signer.ts'
import { makeRenewalCredential, makeRenewalRoot } from '#plane/issuers/renewal-credential.ts'
import { openStepCa, type StepCaOptions } from '#plane/issuers/step-ca.ts'
import { issuingSpec, leafSpec } from '#pki/authority-certificates.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { judgeReturned, type ViolatedField } from '#pki/returned-certificate.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { type Lie, type LyingIssuer, says, startLyingIssuer } from '../fakes/lying-issuer.ts'
import { cleanup } from '../process/cleanup.ts'
import { authority, day, type Held, hierarchy, hold, nodeOrder, nowMs } from '../vectors/pki-hierarchy.ts'

const never = new AbortController().signal
const outside = hierarchy('p256', nowMs - day)
const provisioner = { name: 'muster', keyId: 'kid', key: generateKey('p256') }
const making = { domain: 'example.test', nowMs, random: systemRandom }
const renewalRoot = makeRenewalRoot(making)
const credential = makeRenewalCredential(renewalRoot, making)
const key = generateKey('p256')
const serial = serialOf(systemRandom.bytes(16))

const attempt: Attempt = {
  order: nodeOrder(key, {}),
  kind: 'nodes',
  purpose: 'enrollment',
  request: fromPem('CERTIFICATE REQUEST', makeCsr(key, 'gpu-001')) ?? assert.fail('no PEM'),
  serial,
}

const signerAt = (t: TestContext, issuer: LyingIssuer, more: Partial<StepCaOptions> = {}) => {
  const signer = openStepCa({
    timers: systemTimers,
    clock: manualClock(nowMs),
    random: systemRandom,
    address: issuer.address,
    serverRoots: issuer.roots,
    roots: [outside.root.certificate.der],
    mostConnections: 2,
    enrollment: provisioner,
    renewal: { name: 'muster-renewal', root: renewalRoot.certificate.der, credential: () => credential },
    revokes: null,
    samples: async () => [],
    ...more,
  })
  cleanup(t, () => signer.close())
  return signer
}

const told = async (t: TestContext, lie: Lie, more: Partial<StepCaOptions> = {}) => {
  const issuer = await startLyingIssuer(t)
  issuer.answer(lie)
  return { issuer, signer: signerAt(t, issuer, more) }
}

const isFault = (code: IssuerFaultCode) => (error: unknown) =>
  error instanceof IssuerFault && error.code === code && !error.isUndone

const megabytes = Buffer.alloc(10 * 1024 * 1024, ' ').toString()
const noAnswers: readonly { readonly lie: string; readonly answer: Lie; readonly code: IssuerFaultCode }[] = [
  { lie: 'HTML', answer: says(201, '<html>', 'text/html'), code: 'not-json' },
  { lie: 'nothing', answer: says(201, ''), code: 'failed' },
  { lie: '10 MiB', answer: says(201, megabytes), code: 'too-long' },
  { lie: 'silence', answer: () => {}, code: 'timeout' },
  { lie: 'an end of the connection', answer: (response) => void response.destroy(), code: 'cut' },
  {
    lie: 'another host',
    answer: (response) => void response.writeHead(308, { location: 'https://192.0.2.1/' }).end(),
    code: 'redirect',
  },
  { lie: 'that it signed, without a certificate', answer: says(201, { certChain: [] }), code: 'failed' },
  { lie: 'a certificate that is no PEM', answer: says(201, { certChain: ['x'] }), code: 'failed' },
  { lie: 'a certificate that is no text', answer: says(201, { certChain: [{}] }), code: 'failed' },
  { lie: 'a thousand certificates', answer: says(201, { certChain: Array(1000).fill('x') }), code: 'failed' },
  { lie: 'an error of its own', answer: says(500, { message: 'disk full' }), code: 'failed' },
  { lie: 'a list', answer: says(201, []), code: 'failed' },
]

describe('no answer to a signature, so that it may have signed', () => {
  for (const { lie, answer, code } of noAnswers)
    test(lie, async (t) => {
      const { signer, issuer } = await told(t, answer, {
        limits: { connectMs: 20_000, answerMs: code === 'timeout' ? 200 : 20_000 },
      })
      await assert.rejects(signer.sign(attempt, never), isFault(code))
      // One serial is sent once.
      assert.equal(issuer.asked.length, 1)
    })
})

test('what it refuses was not signed, and its sentence is one line of bounded length', async (t) => {
  const { signer } = await told(t, says(403, { message: `\u001b[31m${'x'.repeat(10_000)}\n` }))
  const refused = await signer.sign(attempt, never)
  assert.ok(refused.kind === 'unsigned')
  assert.match(refused.why, /^\\x1b\[31mx{300,}\s\(403\)$/)
  assert.ok(refused.why.length < 450)
  const busy = await told(t, says(429, { message: 'slow down' }))
  assert.equal((await busy.signer.sign(attempt, never)).kind, 'unsent')
})

test('it gets a token for this request alone, and nothing that it could sign with', async (t) => {
  const { signer, issuer } = await told(t, says(403, {}))
  await signer.sign(attempt, never)
  await signer.sign({ ...attempt, purpose: 'renewal' }, never)
  const secrets = [provisioner.key, credential.key, key].map((one) => one.pkcs8Pem().split('\n')[1] ?? '')
  const [enrollment, renewal] = issuer.asked.map(({ body }) => {
    assert.ok(!secrets.some((secret) => JSON.stringify(body).includes(secret)))
    const { ott, notAfter } = body as { ott: string; notAfter: string }
    assert.equal(notAfter, new Date(nowMs + day).toISOString())
    const [header = '', claims = ''] = ott.split('.')
    const read = (part: string): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())
    return { header: read(header), claims: read(claims) }
  })
  assert.deepEqual(enrollment?.header, { alg: 'ES256', typ: 'JWT', kid: 'kid' })
  const x5c = [Buffer.from(credential.certificate.der).toString('base64')]
  assert.deepEqual(renewal?.header, { alg: 'ES256', typ: 'JWT', x5c })
  const { jti, cnf, sha, ...claims } = enrollment?.claims ?? {}
  assert.notEqual(jti, renewal?.claims['jti'])
  assert.deepEqual(cnf, renewal?.claims['cnf'])
  assert.match(String(sha), /^[0-9a-f]{64}$/)
  const at = nowMs / 1000
  assert.deepEqual(claims, {
    iss: 'muster',
    aud: `${issuer.address}/1.0/sign`,
    sub: 'gpu-001',
    iat: at,
    nbf: at,
    exp: at + 60,
    muster: {
      order: 'order-1',
      serial: decimalSerial(serial),
      subject: { cn: 'node-gpu-001', o: ['example.test'], ou: ['nodes'] },
      uris: ['spiffe://example.test/node/gpu-001'],
      dnsNames: [],
      ips: [],
      usage: ['clientAuth'],
    },
  })
  assert.equal(renewal?.claims['aud'], `${issuer.address}/1.0/sign#x5c/muster-renewal`)
})

const signedAs = (
  change: Partial<OrderDraft>,
  { by = outside.issuing, of = key, number = serial }: { by?: Held; of?: PrivateKey; number?: string } = {},
): readonly Uint8Array[] => {
  const spec = leafSpec(nodeOrder(of, change), by.certificate, Buffer.from(number, 'hex'))
  return [hold(of, spec, by.key).certificate.der, outside.issuing.certificate.der, outside.domainCa.certificate.der]
}

const stranger = hierarchy('p256', nowMs - day)
/** The issuing CA by its name and in its chain, with another key. */
const impostor: Held = { ...outside.issuing, key: generateKey('p256') }
const asCa = hold(
  key,
  issuingSpec({ ...authority(key, day, nowMs), serial: Buffer.from(serial, 'hex') }, outside.domainCa.certificate),
  outside.domainCa.key,
)

const violations: readonly {
  readonly lie: string
  readonly chain: readonly Uint8Array[]
  readonly field: ViolatedField
}[] = [
  { lie: 'for another key', chain: signedAs({}, { of: generateKey('p256') }), field: 'publicKey' },
  {
    lie: 'for another node',
    chain: signedAs({ subject: { cn: 'node-2', o: 'example.test', ou: 'nodes' } }),
    field: 'subject',
  },
  { lie: 'with a name besides', chain: signedAs({ dnsSans: ['plane.example.test'] }), field: 'subjectAltName' },
  { lie: 'for servers, too', chain: signedAs({ usage: 'both' }), field: 'extendedKeyUsage' },
  { lie: 'that lives longer', chain: signedAs({ lifetimeMs: 2 * day }), field: 'notAfter' },
  { lie: 'that lives too short', chain: signedAs({ lifetimeMs: day / 4 }), field: 'notAfter' },
  { lie: 'that has expired', chain: signedAs({ issuedAtMs: nowMs - 2 * day }), field: 'notAfter' },
  { lie: 'of a CA', chain: [asCa.certificate.der, outside.domainCa.certificate.der], field: 'basicConstraints' },
  { lie: 'with another serial', chain: signedAs({}, { number: '1234567890abcdef' }), field: 'serial' },
  { lie: 'by somebody else', chain: signedAs({}, { by: stranger.issuing }), field: 'chain' },
  { lie: 'by somebody of the same name', chain: signedAs({}, { by: impostor }), field: 'chain' },
  { lie: 'that is none', chain: [Buffer.from('not a certificate')], field: 'encoding' },
]

describe('a certificate comes back as it was sent, and is found to be', () => {
  for (const { lie, chain, field } of violations)
    test(lie, async (t) => {
      const { signer } = await told(t, says(201, { certChain: chain.map((der) => toPem('CERTIFICATE', der)) }))
      const returned = await signer.sign(attempt, never)
      assert.ok(returned.kind === 'returned')
      const verdict = judgeReturned({
        order: attempt.order,
        chain: returned.chain,
        roots: [outside.root.certificate.der],
        withdrawn: [],
        serial,
        isOnRecord: false,
        answeredAtMs: nowMs + 1000,
        clock: { aheadMs: null, toleranceMs: 0 },
        leastLifetimeMs: day / 2,
      })
      assert.ok(verdict.kind === 'violates')
      assert.ok(
        verdict.violations.some((one) => one.field === field),
        JSON.stringify(verdict),
      )
    })
})

test('a revocation is one only if it says so of this serial', async (t) => {
  const { issuer, signer } = await told(t, says(200, { status: 'ok' }))
  const revoke = (lie: Lie) => {
    issuer.answer(lie)
    return signer.revoke(serial, 'unspecified', never)
  }
  const already = (number: string): object => ({
    message: `The request could not be completed: certificate with serial number '${number}' is already revoked.`,
  })
  assert.equal(await revoke(says(200, { status: 'ok' })), 'revoked')
  assert.equal(await revoke(says(200, { status: 'ok', serial: decimalSerial(serial) })), 'revoked')
  assert.equal(await revoke(says(400, already(decimalSerial(serial)))), 'revoked')
  const other = decimalSerial('1f')
  for (const lie of [
    says(200, { status: 'ok', serial: other }),
    says(200, { serial_number: 'x' }),
    says(400, already(other)),
  ])
    await assert.rejects(revoke(lie), AnotherSerial)
  for (const lie of [
    says(200, {}),
    says(200, { status: 'pending' }),
    says(400, { message: 'already revoked' }),
    says(403, {}),
  ])
    await assert.rejects(revoke(lie), isFault('failed'))
  const sent = issuer.asked[0]?.body as { serial: string; passive: boolean; ott: string }
  assert.deepEqual([sent.serial, sent.passive], [decimalSerial(serial), true])
})

const sample = {
  kind: 'nodes',
  what: 'profile nodes',
  keyTypes: ['p256'],
  leastLifetimeMs: day / 2,
  toleranceMs: 0,
  order: () => attempt.order,
} as const

test('the test of one that lists no provisioners goes by what it signs', async (t) => {
  const { signer } = await told(t, says(401, { message: 'no' }), { samples: async () => [sample] })
  const faults = await signer.test(never)
  assert.deepEqual([...new Set(faults.map(({ setting }) => setting))], ['dnsNames'])
})

test('a revocation that is answered with another serial ends the test', async (t) => {
  const certChain = signedAs({}).map((der) => toPem('CERTIFICATE', der))
  const answers: Readonly<Record<string, Lie>> = {
    '/1.0/sign': says(201, { certChain }),
    '/1.0/revoke': says(200, { status: 'ok', serial: '7' }),
  }
  const lie: Lie = (response, asked) => (answers[asked.path] ?? says(404, {}))(response, asked)
  const { signer } = await told(t, lie, { samples: async () => [sample] })
  await assert.rejects(signer.test(never), AnotherSerial)
})
