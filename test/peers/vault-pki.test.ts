// A real Vault as an outside issuer, set up by the commands of docs/issuers/VAULT.md: the whole life of a certificate there.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { keyTypes } from '#domain/core/profile.ts'
import { generateKey, loadPrivateKey, spkiHash } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { judgeReturned } from '#pki/returned-certificate.ts'
import { systemClock } from '#platform/clock.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { documentedCommands } from './documented-block.ts'
import { peer, suiteWith, withPeer } from './peer.ts'
import { runOpenssl } from './run-openssl.ts'
import { runVaultCommands } from './vault-commands.ts'
import {
  askFor,
  connectByToken,
  dataOf,
  issuerAt,
  judged,
  mount,
  never,
  page,
  sampleOf,
  serialOf,
  signed,
  vaultOfSuite,
} from './vault-set-up.ts'

describe('Vault signs, revokes and finds', suiteWith(peer('vault')), () => {
  const there = vaultOfSuite()

  const written = (t: TestContext, files: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
    const folder = tempFolder(t)
    return Object.fromEntries(
      Object.entries(files).map(([name, text]) => {
        fs.writeFileSync(path.join(folder, name), text, { mode: 0o600 })
        return [name, path.join(folder, name)]
      }),
    )
  }

  describe('what was ordered is signed, and nothing else', () => {
    for (const type of keyTypes) {
      test(`for a key of type ${type}: as ordered, and OpenSSL verifies it`, async (t) => {
        if (withPeer(t, 'openssl') === null) return
        const asked = askFor(generateKey(type))
        const returned = await signed(there.issuer, asked)
        const verdict = judged(asked, returned, there.root)
        assert.ok(verdict.kind === 'as-ordered', JSON.stringify(verdict))
        assert.equal(verdict.shortByMs, 0)
        const files = written(t, {
          leaf: toPem('CERTIFICATE', returned.chain[0]!),
          roots: toPem('CERTIFICATE', there.root),
        })
        const verified = runOpenssl([
          'verify',
          '-x509_strict',
          '-purpose',
          'sslclient',
          '-CAfile',
          files['roots']!,
          files['leaf']!,
        ])
        assert.equal(verified.status, 0, verified.text)
        const { text } = runOpenssl([
          'x509',
          '-in',
          files['leaf']!,
          '-noout',
          '-subject',
          '-ext',
          'subjectAltName,keyUsage,extendedKeyUsage',
        ])
        assert.match(text, /subject=O = example.org, OU = nodes, CN = node-gpu-001\n/)
        assert.match(text, /Subject Alternative Name: *\n? +URI:spiffe:\/\/example.org\/node\/gpu-001\n/)
        assert.match(text, /X509v3 Key Usage: critical\n +Digital Signature\n/)
        assert.match(text, /X509v3 Extended Key Usage: *\n +TLS Web Client Authentication\n/)
      })
    }

    test('with names, addresses and both usages, as programs have them, by the role that is printed for that', async (t) => {
      if (withPeer(t, 'openssl') === null) return
      const asked = askFor()
      const order = {
        ...asked.attempt.order,
        uriSans: ['spiffe://example.org/node/gpu-001/program/db'],
        dnsSans: ['www.example.org', 'db.example.org'],
        ipSans: ['192.0.2.1', '2001:db8::1'],
        usage: 'both',
      } as const
      const sample = { ...sampleOf(), order: (publicKey: Uint8Array) => ({ ...order, publicKey }) }
      const policy = documentedCommands(page, 'policy write muster-issuer')
      await runVaultCommands(there.server, policy.replaceAll('/gpu-cloud', '/programs'))
      const programs = issuerAt(there.vault, there.root, {
        roles: { '*': 'programs' },
        samples: () => Promise.resolve([sample]),
      })
      const [missing] = await programs.test(never)
      await runVaultCommands(there.server, missing!.fix)
      assert.deepEqual(await programs.test(never), [])
      const returned = await signed(programs, { ...asked, attempt: { ...asked.attempt, order } })
      const files = written(t, { leaf: toPem('CERTIFICATE', returned.chain[0]!) })
      const { text } = runOpenssl(['x509', '-in', files['leaf']!, '-noout', '-ext', 'subjectAltName,extendedKeyUsage'])
      const names = (/Alternative Name: *\n? +(.*)\n/.exec(text)?.[1] ?? '').split(', ').toSorted()
      assert.deepEqual(names, [
        'DNS:db.example.org',
        'DNS:www.example.org',
        'IP Address:192.0.2.1',
        'IP Address:2001:DB8:0:0:0:0:0:1',
        'URI:spiffe://example.org/node/gpu-001/program/db',
      ])
      assert.match(
        text,
        /TLS Web Server Authentication, TLS Web Client Authentication|TLS Web Client Authentication, TLS Web Server/,
      )
      await runVaultCommands(there.server, policy)
    })

    test('whatever the request of the node asks for', async (t) => {
      if (withPeer(t, 'openssl') === null) return
      const key = generateKey('p256')
      const files = written(t, { key: key.pkcs8Pem() })
      const more = ['-addext', 'subjectAltName=DNS:plane.example.org,IP:192.0.2.1,URI:spiffe://example.org/plane']
      const subject = ['-subj', '/C=DE/O=evil/OU=evil/CN=plane.example.org/serialNumber=7']
      const made = runOpenssl([
        'req',
        '-new',
        '-key',
        files['key']!,
        ...subject,
        ...more,
        '-addext',
        'basicConstraints=CA:TRUE',
      ])
      const asked = askFor(loadPrivateKey(key.pkcs8Pem()), fromPem('CERTIFICATE REQUEST', made.text)!)
      const verdict = judged(asked, await signed(there.issuer, asked), there.root)
      assert.equal(verdict.kind, 'as-ordered', JSON.stringify(verdict))
    })
  })

  test('a plane whose clock is 90 s behind that of Vault takes what it signs, and knows how far the clocks are apart', async (t) => {
    const behindMs = 90_000
    const clock = { ...systemClock, nowMs: () => Date.now() - behindMs }
    const issuer = issuerAt(await connectByToken(t, there.server, clock), there.root, { clock })
    const { attempt } = askFor()
    const order = { ...attempt.order, issuedAtMs: clock.nowMs() }
    const { chain } = await signed(issuer, { ...askFor(), attempt: { ...attempt, order } })
    const judge = (aheadMs: number | null, toleranceMs: number) =>
      judgeReturned({
        ...{ order, chain, roots: [there.root], withdrawn: [], serial: null, isOnRecord: false },
        answeredAtMs: clock.nowMs(),
        clock: { aheadMs, toleranceMs },
        leastLifetimeMs: order.lifetimeMs / 2,
      })
    assert.ok(issuer.aheadMs !== null && Math.abs(issuer.aheadMs - behindMs) < 30_000, String(issuer.aheadMs))
    assert.equal(judge(issuer.aheadMs, 300_000).kind, 'as-ordered', JSON.stringify(judge(issuer.aheadMs, 300_000)))
    assert.equal(judge(issuer.aheadMs, 0).kind, 'violates')
  })

  test('a revocation is confirmed by what Vault has on record, is safe to repeat, and is in its list', async (t) => {
    if (withPeer(t, 'openssl') === null) return
    const returned = await signed(there.issuer)
    const serial = serialOf(returned)
    assert.equal(await there.issuer.revoke(serial, 'key-compromise', never), 'revoked')
    assert.equal(await there.issuer.revoke(serial, 'key-compromise', never), 'revoked')
    assert.equal(await there.issuer.revoke('1f2e3d', 'superseded', never), 'unknown there')
    const crl = dataOf((await there.server.call('GET', `${mount}/cert/crl`)).body)['certificate']
    const files = written(t, {
      leaf: toPem('CERTIFICATE', returned.chain[0]!),
      trusted: `${toPem('CERTIFICATE', there.root)}${String(crl)}\n`,
    })
    const verified = runOpenssl(['verify', '-crl_check', '-CAfile', files['trusted']!, files['leaf']!])
    assert.match(verified.text, /certificate revoked/)
  })

  test('a certificate that has expired is not revoked any more, and that is said', async () => {
    const asked = askFor()
    const order = { ...asked.attempt.order, lifetimeMs: 2500 }
    const serial = serialOf(await signed(there.issuer, { ...asked, attempt: { ...asked.attempt, order } }))
    await assert.rejects(
      there.issuer.revoke(serial, 'superseded', never),
      /has not revoked .*already expired; refusing to add to CRL/,
    )
  })

  test('a certificate that nobody got is found by its key among the serials that are not on record', async () => {
    const [lost, kept] = [askFor(), askFor()]
    const serial = serialOf(await signed(there.issuer, lost))
    const onRecord = serialOf(await signed(there.issuer, kept))
    const looked: string[] = []
    const known = (one: string): Promise<boolean> => {
      looked.push(one)
      return Promise.resolve(one === onRecord)
    }
    assert.equal(await there.issuer.find(spkiHash(lost.key.spki), known, never), serial)
    assert.equal(await there.issuer.find(spkiHash(kept.key.spki), known, never), null)
    assert.ok(looked.includes(onRecord))
  })

  test('a Vault that is sealed, unsealed, stopped and started again: each is said, nothing is signed, and it goes on by itself', async () => {
    await signed(there.issuer)
    await there.server.seal()
    const sealed = await there.issuer.sign(askFor().attempt, never)
    assert.ok(sealed.kind === 'unsent')
    assert.match(sealed.why, /Vault is sealed: unseal it \(vault operator unseal\)/)
    assert.deepEqual(
      (await there.issuer.test(never)).map(({ setting, fix }) => [setting, fix]),
      [['address', 'vault operator unseal']],
    )
    await assert.rejects(there.issuer.revoke('1f', 'superseded', never), /Vault is sealed/)
    await there.server.unseal()
    await signed(there.issuer)
    await there.server.stop()
    const stopped = await there.issuer.sign(askFor().attempt, never)
    assert.ok(stopped.kind === 'unsent')
    assert.match(stopped.why, /no connection \(ECONNREFUSED\)/)
    assert.deepEqual(
      (await there.issuer.test(never)).map(({ setting }) => setting),
      ['address'],
    )
    await there.server.start()
    await signed(there.issuer)
    assert.deepEqual(await there.issuer.test(never), [])
  })
})
