// Keys in a real Vault's Transit engine, set up by the commands of docs/issuers/VAULT.md: what the plane's authorities make with them is verified by
// OpenSSL, and what becomes of a key there is said.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import type { KeyType } from '#domain/core/profile.ts'
import { issuingSpec, leafSpec, responderSpec, rootLifetimeMs, rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { buildCrl } from '#pki/crl.ts'
import { generateKey, keyId } from '#pki/keys.ts'
import { parseOcspRequest } from '#pki/ocsp-request.ts'
import { buildOcspResponse } from '#pki/ocsp-response.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { toPem } from '#pki/pem.ts'
import type { Signer } from '#pki/signer.ts'
import { tokenInFile } from '#plane/outside/vault-login.ts'
import type { Vault } from '#plane/outside/vault-server.ts'
import { openTransitSigner, readTransitKey, type TransitKey, type TransitSigner } from '#plane/keys/vault-transit.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { builtPeer } from './built-peer.ts'
import { documentedCommands } from './documented-block.ts'
import { peer, suiteWith, withPeer } from './peer.ts'
import { runOpenssl } from './run-openssl.ts'
import { runVaultCommands } from './vault-commands.ts'
import { startVault, type VaultPeer } from './vault-server.ts'
import { askFor, connect, never, page, tokenFile } from './vault-set-up.ts'

describe('keys in Transit', suiteWith(peer('vault')), () => {
  const ends: (() => unknown)[] = []
  const scope = { after: (end: () => unknown) => void ends.push(end) }
  let server: VaultPeer
  let vault: Vault
  const block = documentedCommands(page, 'secrets enable transit')

  before(async () => {
    server = await startVault(scope, await builtPeer('vault'))
    await runVaultCommands(server, block)
    const file = await tokenFile(scope, server, { 'muster-issuer': 'muster-keys' })
    vault = connect(scope, server, tokenInFile(file))
  })
  after(async () => {
    for (const end of ends.toReversed()) await end()
  })

  const day = 86_400_000
  const minute = 60_000
  const typeThere: Record<KeyType, string> = { p256: 'ecdsa-p256', p384: 'ecdsa-p384', ed25519: 'ed25519' }

  const allowed = new Set<string>()
  /** The policy of the page, for all of these keys. */
  const allow = async (): Promise<void> => {
    const lines = block.split('\n').filter((line) => line.startsWith('path '))
    const all = [...allowed].flatMap((name) => lines.map((line) => line.replaceAll('muster-issuing', name)))
    await runVaultCommands(server, `vault policy write muster-keys - <<'END'\n${all.join('\n')}\nEND`)
  }

  /** A key as the page makes it, under another name. */
  const makeKey = async (name: string, type: KeyType = 'p256'): Promise<TransitKey> => {
    const line = block.split('\n').find((one) => one.startsWith('vault write')) ?? ''
    await runVaultCommands(server, line.replace('muster-issuing', name).replace('ecdsa-p256', typeThere[type]))
    allowed.add(name)
    await allow()
    return readTransitKey(vault, { mount: 'transit', name, version: null }, never)
  }
  const signerOf = (key: TransitKey): TransitSigner => openTransitSigner({ vault, timers: systemTimers }, key)
  const change = async (route: string, json: object): Promise<void> => {
    const answer = await server.call('POST', `transit/keys/${route}`, json)
    assert.ok(answer.status < 300, JSON.stringify(answer))
  }

  const openssl = (args: readonly string[]): string => {
    const { status, text } = runOpenssl(args)
    assert.equal(status, 0, `openssl ${args.join(' ')}\n${text}`)
    return text
  }

  const parsed = (der: Uint8Array): ParsedCertificate => {
    const certificate = parseCertificate(der)
    assert.ok(certificate.kind === 'certificate')
    return certificate
  }

  const request = (key: Pick<Signer, 'spki'>, lifetimeMs: number) => ({
    ...{ domain: 'example.org', spki: key.spki, serial: systemRandom.bytes(16) },
    ...{ nowMs: Date.now(), lifetimeMs },
  })

  for (const type of ['p256', 'p384', 'ed25519'] as const) {
    test(`root, issuing CA, leaf, revocation list and OCSP answer by keys of ${type} in Transit: OpenSSL verifies each`, async (t: TestContext) => {
      if (withPeer(t, 'openssl') === null) return
      const folder = tempFolder(t)
      const file = (name: string, content: Uint8Array | string): string => {
        fs.writeFileSync(path.join(folder, name), content)
        return path.join(folder, name)
      }
      const [rootKey, issuingKey, responderKey] = [
        signerOf(await makeKey(`root-${type}`, type)),
        signerOf(await makeKey(`issuing-${type}`, type)),
        signerOf(await makeKey(`responder-${type}`, type)),
      ]
      assert.equal(rootKey.type, type)
      const root = parsed(
        await buildCertificate(rootSpec({ ...request(rootKey, rootLifetimeMs), pathLen: 1 }), rootKey),
      )
      const issuing = parsed(await buildCertificate(issuingSpec(request(issuingKey, 30 * day), root), rootKey))
      const leaf = async (): Promise<ParsedCertificate> => {
        const spec = leafSpec(askFor().attempt.order, issuing, systemRandom.bytes(16))
        return parsed(await buildCertificate(spec, issuingKey))
      }
      const [good, revoked] = await Promise.all([leaf(), leaf()])
      const pem = (name: string, one: ParsedCertificate): string => file(`${name}.pem`, toPem('CERTIFICATE', one.der))
      const files = {
        root: pem('root', root),
        issuing: pem('issuing', issuing),
        good: pem('good', good),
        revoked: pem('revoked', revoked),
      }
      const trust = ['-CAfile', files.root, '-no-CApath', '-no-CAstore']
      openssl([
        'verify',
        '-x509_strict',
        '-check_ss_sig',
        ...trust,
        '-untrusted',
        files.issuing,
        files.good,
        files.revoked,
      ])

      const crl = await buildCrl(
        {
          issuer: issuing.subjectName,
          authorityKeyId: keyId(issuing.spki),
          ...{ number: 1, baseNumber: null, freshestUrl: null },
          ...{ thisUpdateMs: Date.now() - minute, nextUpdateMs: Date.now() + day },
          entries: [{ serial: revoked.serial, atMs: Date.now() - minute, reason: 'superseded' }],
        },
        issuingKey,
      )
      const crlFile = file('crl.der', crl)
      openssl(['crl', '-inform', 'DER', '-in', crlFile, '-noout', '-verify', '-CAfile', files.issuing, '-no-CApath'])

      const responder = await buildCertificate(responderSpec(request(responderKey, day), issuing), issuingKey)
      const asked = file('request.der', '')
      const certs = ['-issuer', files.issuing, '-cert', files.good, '-cert', files.revoked]
      openssl(['ocsp', '-no_nonce', ...certs, '-reqout', asked])
      const ids = parseOcspRequest(fs.readFileSync(asked))
      assert.ok(ids.kind === 'ocsp-request')
      const answer = await buildOcspResponse(
        {
          answers: ids.asked.map(({ der: certId, serial }) => ({
            certId,
            status:
              serial === good.serial
                ? { kind: 'good' }
                : { kind: 'revoked', atMs: Date.now() - minute, reason: 'superseded' },
          })),
          ...{
            producedAtMs: Date.now(),
            thisUpdateMs: Date.now() - minute,
            nextUpdateMs: Date.now() + minute,
            nonce: null,
          },
        },
        { key: responderKey, certificate: responder },
      )
      const response = ['-respin', file('answer.der', answer)]
      const said = openssl(['ocsp', '-no_nonce', ...certs, ...response, ...trust, '-verify_other', files.issuing])
      assert.match(said, /Response verify OK/)
      assert.match(said, /good\.pem: good[^]*revoked\.pem: revoked/)
    })
  }

  const data = Buffer.from('what is to be signed')
  const signs = async (signer: TransitSigner): Promise<void> => void (await signer.sign(data))
  const refuses = (signer: TransitSigner, message: RegExp): Promise<void> => assert.rejects(signer.sign(data), message)

  describe('what becomes of a key', () => {
    test('a rotation changes nothing: the version that was named signs on, until it is ended there', async () => {
      const key = await makeKey('rotated')
      const signer = signerOf(key)
      await signs(signer)
      await change('rotated/rotate', {})
      await signs(signer)
      const newest = await readTransitKey(vault, { mount: 'transit', name: 'rotated', version: null }, never)
      assert.deepEqual([key.version, newest.version], [1, 2])
      await signs(signerOf(newest))
      assert.deepEqual(await readTransitKey(vault, { mount: 'transit', name: 'rotated', version: 1 }, never), key)
      await change('rotated/config', { min_encryption_version: 2 })
      await refuses(
        signer,
        /transit\/keys\/rotated version 1: it may not sign any more: vault write transit\/keys\/rotated\/config min_encryption_version=1/,
      )
      await runVaultCommands(server, 'vault write transit/keys/rotated/config min_encryption_version=1')
      await signs(signer)
      await assert.rejects(
        readTransitKey(vault, { mount: 'transit', name: 'rotated', version: 3 }, never),
        /transit\/keys\/rotated: it has no version 3/,
      )
    })

    test('one that is deleted is gone, and another one of its name is not taken for it', async () => {
      const signer = signerOf(await makeKey('deleted'))
      await signs(signer)
      await change('deleted/config', { deletion_allowed: true })
      assert.equal((await server.call('DELETE', 'transit/keys/deleted')).status, 204)
      await refuses(signer, /transit\/keys\/deleted version 1: it is gone: restore it from a backup of Vault/)
      await makeKey('deleted')
      await refuses(signer, /the signature is not by the key that is on record: another key has its name now/)
    })

    test('permission that is missing is named with the line of the policy', async () => {
      const signer = signerOf(await makeKey('denied'))
      allowed.delete('denied')
      await allow()
      await refuses(signer, /permission denied: path "transit\/sign\/denied" { capabilities = \["update"\] }/)
      await assert.rejects(
        readTransitKey(vault, { mount: 'transit', name: 'denied', version: null }, never),
        /permission denied: the policy of the login has to allow read on transit\/keys\/denied/,
      )
    })
  })

  describe('a key that is not fit is refused when it is named', () => {
    const cases: readonly (readonly [name: string, settings: object, why: RegExp])[] = [
      ['rsa', { type: 'rsa-2048' }, /it is of type rsa-2048: make one of ecdsa-p256, ecdsa-p384 or ed25519/],
      ['aes', { type: 'aes256-gcm96' }, /it is of type aes256-gcm96/],
      ['p521', { type: 'ecdsa-p521' }, /it is of type ecdsa-p521/],
      ['derived', { type: 'ed25519', derived: true }, /derived anew/],
      ['exportable', { type: 'ecdsa-p256', exportable: true }, /it is exportable, and Vault never takes that back/],
      ['backup', { type: 'ecdsa-p256', allow_plaintext_backup: true }, /it may be backed up in plain text/],
    ]
    for (const [name, settings, why] of cases) {
      test(name, async () => {
        allowed.add(name)
        await allow()
        await change(name, settings)
        await assert.rejects(readTransitKey(vault, { mount: 'transit', name, version: null }, never), why)
      })
    }

    test('one that is not there, with the command that makes it; and a mount that is not there', async () => {
      allowed.add('absent')
      await allow()
      await assert.rejects(
        readTransitKey(vault, { mount: 'transit', name: 'absent', version: null }, never),
        /there is none: vault write transit\/keys\/absent type=ecdsa-p256/,
      )
      const policy = block.slice(block.indexOf('vault policy')).replaceAll('muster-issuing', 'absent')
      await runVaultCommands(server, policy.replaceAll('transit/', 'nowhere/'))
      await assert.rejects(
        readTransitKey(vault, { mount: 'nowhere', name: 'absent', version: null }, never),
        /there is no secrets engine at nowhere/,
      )
    })
  })

  test('while Vault is sealed or stopped each signature fails with a sentence, and goes on when it is back', async () => {
    const signer = signerOf(await makeKey('patient'))
    await signs(signer)
    await server.seal()
    await refuses(signer, /Vault is sealed: unseal it/)
    await server.unseal()
    await signs(signer)
    await server.stop()
    await refuses(signer, /no connection \(ECONNREFUSED\)|the connection was lost/)
    await server.start()
    await signs(signer)
  })

  test('a pinned key that is none is refused before anything is asked', () => {
    const key = { mount: 'transit', name: 'any', version: 1, spki: new Uint8Array(10) }
    assert.throws(() => signerOf(key), /the public key pinned for transit\/any is none/)
    assert.ok(signerOf({ ...key, spki: generateKey('p256').spki }))
  })
})
