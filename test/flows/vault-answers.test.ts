// What no Vault should answer, and what a good one answers seldom: by a fake Vault, because a real one cannot be made to lie.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { colonSerial } from '#domain/issuers/serial.ts'
import { toPem } from '#pki/pem.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { AnotherSerial } from '#plane/issuers/outside-signer.ts'
import { openVaultIssuer } from '#plane/issuers/vault-issuer.ts'
import { readReply, VaultFault, type VaultReply, type VaultRequest } from '#plane/outside/vault-reply.ts'
import { openTransitSigner } from '#plane/keys/vault-transit.ts'
import { systemTimers } from '#platform/timers.ts'
import { generateKey, spkiHash } from '#pki/keys.ts'
import { hierarchy, leaf, nodeOrder } from '../vectors/pki-hierarchy.ts'

const never = new AbortController().signal
const nowMs = Date.UTC(2026, 5, 1, 12, 0, 0)
const outside = hierarchy('p256', nowMs - 86_400_000)
const key = generateKey('p256')
const order = nodeOrder(key, {})
const held = (of = key) => leaf(of, nodeOrder(of, {}), outside.issuing).certificate
const attempt = {
  order,
  kind: 'gpu-cloud',
  purpose: 'enrollment',
  request: new Uint8Array(4),
  serial: null,
} as const

const answer = (status: number, json: unknown = {}): VaultReply => readReply({ status, json }, [])

const issuerOf = (ask: (request: VaultRequest) => VaultReply) => {
  const asked: VaultRequest[] = []
  const vault = {
    ask: async (request: VaultRequest) => {
      asked.push(request)
      return ask(request)
    },
    aheadMs: () => null,
    login: { condition: () => ({ kind: 'none' }) as const, fix: '' },
  }
  const issuer = openVaultIssuer({
    vault,
    clock: { nowMs: () => nowMs },
    mount: 'pki',
    roles: { '*': 'node' },
    abilities: null,
    outsideRoots: [outside.root.certificate.der],
    samples: () => Promise.resolve([]),
  })
  return { issuer, asked }
}

describe('a signature', () => {
  test('is asked for with exactly what is ordered, and a minute less than what is left of it', async () => {
    const der = Buffer.from(held().der).toString('base64')
    const { issuer, asked } = issuerOf(() => answer(200, { data: { certificate: der, issuing_ca: der } }))
    const more = nodeOrder(key, { dnsSans: ['a.example', 'b.example'], ipSans: ['192.0.2.1', '2001:db8::1'] })
    const returned = await issuer.sign({ ...attempt, order: more }, never)
    assert.ok(returned.kind === 'returned')
    assert.equal(returned.chain.length, 2)
    assert.deepEqual(asked, [
      {
        method: 'POST',
        path: 'pki/sign/node',
        json: {
          csr: toPem('CERTIFICATE REQUEST', attempt.request),
          common_name: 'node-gpu-001',
          exclude_cn_from_sans: true,
          uri_sans: ['spiffe://example.test/node/gpu-001'],
          alt_names: 'a.example,b.example',
          ip_sans: ['192.0.2.1', '2001:db8::1'],
          ttl: `${24 * 3600 - 60}s`,
          format: 'der',
        },
      },
    ])
  })

  test('is not asked for when what was ordered is over, or has no role', async () => {
    const { issuer, asked } = issuerOf(() => answer(200))
    const over = await issuer.sign({ ...attempt, order: nodeOrder(key, { issuedAtMs: nowMs - 86_400_000 }) }, never)
    assert.equal(over.kind, 'unsigned')
    assert.deepEqual(asked, [])
  })

  const nonsense: readonly unknown[] = [
    {},
    { data: null },
    { data: { certificate: 7 } },
    { data: { certificate: 'not base64!' } },
    { data: { certificate: 'AAAA', ca_chain: Array.from({ length: 20 }, () => 'AAAA') } },
    { data: { certificate: 'A'.repeat(40_000) } },
    [],
    'text',
  ]
  for (const json of nonsense) {
    test(`that is ${JSON.stringify(json).slice(0, 60)} is a fault, and nothing is known then`, async () => {
      const { issuer } = issuerOf(() => answer(200, json))
      await assert.rejects(issuer.sign(attempt, never), { name: 'VaultFault', code: 'broken', isUndone: false })
    })
  }

  test('that failed before it was asked for may be asked for again; after that nobody knows', async () => {
    const failing = (error: Error) =>
      issuerOf(() => {
        throw error
      }).issuer.sign(attempt, never)
    const unsent = [
      new IssuerFault('no connection', 'unreachable', true),
      new VaultFault('sealed', 'sealed', true),
      new VaultFault('busy', 'a rate limit', true),
    ]
    for (const error of unsent) assert.deepEqual(await failing(error), { kind: 'unsent', why: error.message })
    for (const error of [new IssuerFault('no answer', 'timeout', false), new VaultFault('broken', '500', false)])
      await assert.rejects(failing(error), error)
  })
})

describe('a revocation', () => {
  const asked = held()
  const record = (of = asked, revocationTime: unknown = 1_795_000_000): VaultReply =>
    answer(200, { data: { certificate: toPem('CERTIFICATE', of.der).trim(), revocation_time: revocationTime } })
  const revoking = (first: VaultReply, second: VaultReply) =>
    issuerOf(({ method }) => (method === 'POST' ? first : second)).issuer.revoke(asked.serial, 'superseded', never)

  test('counts when the record of that very serial says so', async () => {
    assert.equal(await revoking(answer(200), record()), 'revoked')
  })

  test('that is answered with the record of another certificate is none', async () => {
    await assert.rejects(revoking(answer(200), record(held())), AnotherSerial)
    await assert.rejects(revoking(answer(200), answer(200, { data: { certificate: 'none' } })), AnotherSerial)
  })

  test('that is not on record afterwards is none', async () => {
    for (const time of [0, null, '1795000000'])
      await assert.rejects(
        revoking(answer(200, { warnings: ['it has expired'] }), record(asked, time)),
        /has not revoked .*/,
      )
    await assert.rejects(revoking(answer(200), answer(404)), /does not know the certificate/)
    await assert.rejects(revoking(answer(403), record()), /permission denied: the policy/)
    await assert.rejects(revoking(answer(200), answer(403)), /has to allow read on pki\/cert\//)
  })

  test('of a serial that Vault does not know is unknown there', async () => {
    assert.equal(await revoking(answer(400, { errors: ['not found'] }), answer(404)), 'unknown there')
  })
})

describe('the search for a certificate that nobody got', () => {
  const serialAt = (at: number): string => (0x10000000 + at).toString(16)
  const unknown = (): Promise<boolean> => Promise.resolve(false)
  const listing = (count: number, lost: ReturnType<typeof held> | null) =>
    issuerOf(({ method, path }) => {
      if (method === 'LIST') {
        const keys = Array.from({ length: count }, (_, at) => colonSerial(serialAt(at)))
        return answer(200, { data: { keys: lost === null ? keys : [...keys, colonSerial(lost.serial)] } })
      }
      const isLost = lost !== null && path.endsWith(colonSerial(lost.serial))
      return isLost ? answer(200, { data: { certificate: toPem('CERTIFICATE', lost.der) } }) : answer(404)
    })

  test('reads at most 256 certificates that are not on record', async () => {
    const lost = held()
    const near = listing(255, lost)
    assert.equal(await near.issuer.find(spkiHash(key.spki), unknown, never), lost.serial)
    const far = listing(256, lost)
    assert.equal(await far.issuer.find(spkiHash(key.spki), unknown, never), null)
    assert.equal(far.asked.length, 257)
    const onRecord = (serial: string): Promise<boolean> => Promise.resolve(serial !== lost.serial)
    assert.equal(await listing(50_000, lost).issuer.find(spkiHash(key.spki), onRecord, never), lost.serial)
  })

  test('is not made in more than 100,000 serials, in a list that is too long, or in one that may not be seen', async () => {
    const many = listing(100_001, null)
    assert.equal(await many.issuer.find('00', unknown, never), null)
    assert.equal(many.asked.length, 1)
    const tooLong = issuerOf(() => {
      throw new IssuerFault('the answer has more than 10485760 bytes', 'too-long', false)
    })
    assert.equal(await tooLong.issuer.find('00', unknown, never), null)
    assert.equal(await issuerOf(() => answer(403)).issuer.find('00', unknown, never), null)
  })

  test('takes no certificate that is not under the serial it was read by', async () => {
    const other = held()
    const { issuer } = issuerOf(({ method }) =>
      method === 'LIST'
        ? answer(200, { data: { keys: ['11:22:33', 'nonsense', 7] } })
        : answer(200, { data: { certificate: toPem('CERTIFICATE', other.der) } }),
    )
    assert.equal(await issuer.find(spkiHash(key.spki), unknown, never), null)
  })

  test('fails where Vault does: the order is settled later', async () => {
    const broken = issuerOf(() => {
      throw new VaultFault('broken', 'Vault has failed (500)', false)
    })
    await assert.rejects(broken.issuer.find('00', unknown, never), /Vault has failed/)
  })
})

describe('a signature by a key in Transit', () => {
  const signer = (reply: () => VaultReply) =>
    openTransitSigner(
      { vault: { ask: async () => reply() }, timers: systemTimers },
      { mount: 'transit', name: 'k', version: 2, spki: key.spki },
    )
  const data = Buffer.from('data')
  const good = Buffer.from(key.sign(data)).toString('base64')
  const answered = (signature: unknown): VaultReply => answer(200, { data: { signature } })

  test('is taken when it is by the pinned key, of the version that was named', async () => {
    assert.ok(await signer(() => answered(`vault:v2:${good}`)).sign(data))
  })

  test('is none in every other case', async () => {
    const other = Buffer.from(generateKey('p256').sign(data)).toString('base64')
    for (const wrong of [
      `vault:v1:${good}`,
      `vault:v2:`,
      good,
      `vault:v2:${good}!`,
      7,
      null,
      `vault:v2:${'A'.repeat(400)}`,
    ])
      await assert.rejects(signer(() => answered(wrong)).sign(data), /no signature of that version/)
    for (const wrong of [other, 'AAAA'])
      await assert.rejects(signer(() => answered(`vault:v2:${wrong}`)).sign(data), /another key has its name now/)
  })

  test('that Vault cannot make now says nothing of the key, but where its version may not be used', async () => {
    const failing = (said: string) =>
      signer(() => {
        throw new VaultFault('broken', said, false)
      }).sign(data)
    for (const said of [
      'Vault has failed (502): status 502',
      'the login by AppRole failed: no connection (ECONNREFUSED)',
    ])
      await assert.rejects(failing(said), { code: 'broken', message: said })
    const old = 'Vault has failed (500): requested version for signing is less than the minimum encryption key version'
    await assert.rejects(failing(old), (error: unknown) => {
      return error instanceof VaultFault && error.code === 'key' && /min_encryption_version=2/.test(error.message)
    })
  })
})

test('what Vault says is one printable line without secrets, and not a long one', () => {
  const { said } = readReply(
    {
      status: 400,
      json: {
        errors: [
          `invalid secret_id "s3cr3t"\n\tand \u001b[31m hvs.CAESIPl78H5PBoBOW2TBNr12HVf1T2OytlAMX`,
          'x'.repeat(2000),
        ],
      },
    },
    ['s3cr3t'],
  )
  assert.ok(said.length < 500)
  assert.match(said, /^invalid secret_id "\[secret\]" and \\x1b\[31m \[secret\]; x+$/)
})
