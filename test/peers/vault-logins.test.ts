// Logins at a real Vault with lives of seconds, set up by the commands of docs/issuers/VAULT.md: each is renewed, replaced when it cannot be
// renewed, and named with its setting when it ends.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { rootLifetimeMs, rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey, keyId } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { toPem } from '#pki/pem.ts'
import { tokenInFile, type VaultLogin } from '#plane/outside/vault-login.ts'
import type { Vault } from '#plane/outside/vault-server.ts'
import { systemRandom } from '#platform/random.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { builtPeer } from './built-peer.ts'
import { peer, suiteWith } from './peer.ts'
import { documentedCommands } from './documented-block.ts'
import { runVaultCommands } from './vault-commands.ts'
import { startVault, type VaultPeer } from './vault-server.ts'
import { askFor, connect, dataOf, issuerAt, never, page, setUpPki, signed, tokenFile } from './vault-set-up.ts'

describe('logins at Vault', suiteWith(peer('vault')), () => {
  const ends: (() => unknown)[] = []
  const scope = { after: (end: () => unknown) => void ends.push(end) }
  let server: VaultPeer
  let root: Uint8Array
  const files = tempFolder(scope)

  before(async () => {
    server = await startVault(scope, await builtPeer('vault'))
    root = await setUpPki(server)
  })
  after(async () => {
    for (const end of ends.toReversed()) await end()
  })

  type Token = { readonly accessor: string; readonly renewedAt: unknown; readonly ttl: number }

  /** Of the login that the plane has now. */
  const tokenOf = async (vault: Vault): Promise<Token> => {
    const { data, status, said } = await vault.ask({ method: 'GET', path: 'auth/token/lookup-self' }, never)
    assert.equal(status, 200, said)
    return { accessor: String(data?.['accessor']), renewedAt: data?.['last_renewal_time'], ttl: Number(data?.['ttl']) }
  }

  const revoke = async (vault: Vault): Promise<void> => {
    const { accessor } = await tokenOf(vault)
    assert.equal((await server.call('POST', 'auth/token/revoke-accessor', { accessor })).status, 204)
  }

  /** It is renewed as the same login until its longest life, and is another one then. */
  const livesOn = async (vault: Vault): Promise<void> => {
    const first = await tokenOf(vault)
    await eventually('the login to be renewed', async () => {
      const now = await tokenOf(vault)
      return now.accessor !== first.accessor || now.renewedAt !== undefined
    })
    await eventually('another login', async () => (await tokenOf(vault)).accessor !== first.accessor, {
      withinMs: 30_000,
    })
    await eventually('the login to be good', () => vault.login.condition().kind === 'good')
  }

  /** Vault forgets the login: the next request has another one. */
  const returns = async (vault: Vault): Promise<void> => {
    const before = await tokenOf(vault)
    await revoke(vault)
    await signed(issuerAt(vault, root))
    assert.notEqual((await tokenOf(vault)).accessor, before.accessor)
  }

  /** The end itself has to be announced before it has come: vault-session.test.ts, with a clock that stands still. */
  const announced = (vault: Vault, why: RegExp): Promise<unknown> =>
    eventually(
      'the end to be announced',
      () => {
        const condition = vault.login.condition()
        return (condition.kind === 'ending' || condition.kind === 'failed') && why.test(condition.why)
      },
      { withinMs: 30_000 },
    )

  /** The plane cannot log in: a request says so with the setting, has not been sent, and may be sent again. */
  const refused = async (vault: Vault, why: RegExp, fix: string): Promise<void> => {
    const issuer = issuerAt(vault, root)
    const answer = await issuer.sign(askFor().attempt, never)
    assert.ok(answer.kind === 'unsent', JSON.stringify(answer))
    assert.match(answer.why, why)
    const [fault, ...others] = await issuer.test(never)
    assert.deepEqual([fault?.setting, fault?.fix, others], ['login', fix, []])
    assert.equal(vault.login.condition().kind, 'failed')
  }

  // They wait for seconds to pass, and do not disturb each other.
  describe('logins', { concurrency: true }, () => {
    describe('AppRole', { concurrency: true }, () => {
      const short = { 'token_ttl=1h': 'token_ttl=2s', 'token_max_ttl=24h': 'token_max_ttl=5s' }
      let roleId: string
      before(async () => {
        const [, , role] = await runVaultCommands(server, documentedCommands(page, 'auth enable approle', short))
        roleId = String(dataOf(role?.body)['role_id'])
      })
      const secretOf = async (role: string): Promise<string> => {
        const made = await server.call('POST', `auth/approle/role/${role}/secret-id`, {})
        return String(dataOf(made.body)['secret_id'])
      }
      const login = async (): Promise<VaultLogin & { kind: 'approle' }> => ({
        ...{ kind: 'approle', mount: 'approle', roleId, secretId: await secretOf('muster') },
      })
      /** Vault locks a role after five refusals: those that are to be refused have one of their own. */
      const another = async (role: string): Promise<VaultLogin & { kind: 'approle' }> => {
        const block = documentedCommands(page, 'auth enable approle', { ...short, 'role/muster': `role/${role}` })
        const [, found] = await runVaultCommands(server, block.replace(/^vault auth enable.*\n/, ''))
        const id = String(dataOf(found?.body)['role_id'])
        return { kind: 'approle', mount: 'approle', roleId: id, secretId: await secretOf(role) }
      }
      const anewAt = (mount: string): string =>
        `vault write -f -field=secret_id auth/${mount}/role/ROLE/secret-id > FILE, then muster issuer set ISSUER --secret-id file:FILE`
      const anew = anewAt('approle')

      test('is renewed, logs in again at the end of its longest life, and after Vault has forgotten it', async (t) => {
        const vault = connect(t, server, await login())
        await livesOn(vault)
        await returns(vault)
      })

      test('a secret ID that ends is announced before the login does, and named afterwards', async (t) => {
        const secret = await another('ended')
        const vault = connect(t, server, secret)
        await tokenOf(vault)
        await server.call('POST', 'auth/approle/role/ended/secret-id/destroy', { secret_id: secret.secretId })
        await announced(vault, /the login by AppRole at auth\/approle \(role ID .{8}\.\.\.\) was refused/)
        await eventually('the login to end', () => vault.login.condition().kind === 'failed', { withinMs: 30_000 })
        await refused(vault, /the login by AppRole at auth\/approle .* was refused: invalid role or secret ID/, anew)
      })

      test('a wrong secret ID is in no message', async (t) => {
        const secretId = '0c1f6a52-3e2c-4c5b-9b1e-1d0c2b3a4f5e'
        const vault = connect(t, server, { ...(await another('wrong')), secretId })
        await refused(vault, /invalid role or secret ID/, anew)
        assert.ok(
          !JSON.stringify([vault.login.condition(), await issuerAt(vault, root).test(never)]).includes(secretId),
        )
      })

      test('a server under another root is no fault of the login', async (t) => {
        const vault = connect(t, { address: server.address, roots: toPem('CERTIFICATE', root) }, await login())
        const [fault, ...others] = await issuerAt(vault, root).test(never)
        assert.deepEqual([fault?.setting, others], ['server roots', []])
      })

      test('a wrong mount of the auth method is named', async (t) => {
        const vault = connect(t, server, { ...(await login()), mount: 'somewhere' })
        await refused(vault, /auth\/somewhere/, anewAt('somewhere'))
      })
    })

    describe('a TLS certificate', () => {
      const day = 86_400_000
      const ca = generateKey('p256')
      const made = buildCertificate(
        rootSpec({
          ...{ domain: 'example.org', spki: ca.spki, serial: systemRandom.bytes(16), pathLen: 1 },
          ...{ nowMs: Date.now() - 100 * day, lifetimeMs: rootLifetimeMs },
        }),
        ca,
      )
      const caCertificate = parseCertificate(made)
      const leafFor = (cn: string, notBeforeMs: number, notAfterMs: number): VaultLogin => {
        const key = generateKey('p256')
        assert.ok(caCertificate.kind === 'certificate')
        const der = buildCertificate(
          {
            serial: systemRandom.bytes(16),
            subject: { cn, o: null, ou: null },
            issuer: caCertificate.subjectName,
            notBeforeMs,
            notAfterMs,
            spki: key.spki,
            extensions: {
              ca: null,
              keyUsage: ['digitalSignature'],
              extendedKeyUsage: ['clientAuth'],
              uris: [],
              dnsNames: [],
              ips: [],
              authorityKeyId: keyId(ca.spki),
              aiaUrl: null,
              cdpUrl: null,
            },
          },
          ca,
        )
        return {
          kind: 'certificate',
          mount: 'cert',
          role: 'muster',
          key: key.pkcs8Pem(),
          cert: toPem('CERTIFICATE', der),
        }
      }
      const fresh = (cn = 'muster-plane'): VaultLogin => leafFor(cn, Date.now() - 60_000, Date.now() + 90 * day)

      before(async () => {
        fs.writeFileSync(path.join(files, 'plane-ca.pem'), toPem('CERTIFICATE', made))
        const here = { 'token_ttl=1h': 'token_ttl=2s token_max_ttl=5s' }
        await runVaultCommands(server, documentedCommands(page, 'auth enable cert', here), files)
      })

      test('is renewed, logs in again at the end of its longest life, and after Vault has forgotten it', async (t) => {
        const vault = connect(t, server, fresh())
        await livesOn(vault)
        await returns(vault)
      })

      test('of another name is refused', async (t) => {
        const why = /the login by TLS certificate at auth\/cert \(role muster\) was refused/
        await refused(connect(t, server, fresh('another')), why, 'vault read auth/cert/certs/muster')
      })

      test('whose own end comes nearer is announced, while the login is still good', async (t) => {
        const vault = connect(t, server, leafFor('muster-plane', Date.now() - 70 * day, Date.now() + 30 * day - 60_000))
        await signed(issuerAt(vault, root))
        const condition = vault.login.condition()
        assert.ok(condition.kind === 'ending')
        assert.match(condition.why, /the certificate of the login by TLS certificate at auth\/cert/)
        assert.ok(Math.abs(condition.untilMs - Date.now() - 30 * day) < 120_000)
      })
    })

    describe('a token in a file', { concurrency: true }, () => {
      const short = { '-period=24h': '-period=12s' }
      const hint =
        'vault token create -policy=POLICY -period=24h -orphan -field=token > FILE, then muster issuer set ISSUER --token file:FILE'

      test('with a period is renewed for ever', async (t) => {
        const vault = connect(t, server, tokenInFile(await tokenFile(t, server, short)))
        const first = await tokenOf(vault)
        const renewals = new Set<unknown>()
        await eventually(
          'it to be renewed',
          async () => {
            const now = await tokenOf(vault)
            assert.equal(now.accessor, first.accessor)
            return renewals.add(now.renewedAt).size > 1
          },
          { withinMs: 30_000 },
        )
        assert.equal(vault.login.condition().kind, 'good')
      })

      test('is read again when Vault refuses it', async (t) => {
        const file = await tokenFile(t, server)
        const vault = connect(t, server, tokenInFile(file))
        await signed(issuerAt(vault, root))
        await revoke(vault)
        await refused(vault, /the token in .* was refused: it has ended, was revoked/, hint)
        fs.copyFileSync(await tokenFile(t, server), file)
        await eventually(
          'the new token',
          async () => (await issuerAt(vault, root).sign(askFor().attempt, never)).kind === 'returned',
        )
      })

      test('that nobody can renew is announced before it ends, and its successor is found', async (t) => {
        const file = await tokenFile(t, server, { '-period=24h': '-ttl=6s -explicit-max-ttl=6s' })
        const vault = connect(t, server, tokenInFile(file))
        await tokenOf(vault)
        await announced(vault, /the token in .*/)
        fs.copyFileSync(await tokenFile(t, server), file)
        await eventually('the new token', () => vault.login.condition().kind === 'good', { withinMs: 30_000 })
      })

      test('that is missing, empty or too long is named', async (t) => {
        const folder = tempFolder(t)
        const cases = [
          ['missing', null, /there is no file .*missing/],
          ['empty', '\n', /empty does not hold one token/],
          ['two', 'hvs.one\nhvs.two\n', /two does not hold one token/],
          ['long', 'x'.repeat(5000), /long is too long for a token/],
        ] as const
        for (const [name, text, why] of cases) {
          const file = path.join(folder, name)
          if (text !== null) fs.writeFileSync(file, text)
          await refused(connect(t, server, tokenInFile(file)), why, hint)
        }
      })
    })
  })

  test('a login waits for a Vault that is sealed, and goes on when it is unsealed', async (t: TestContext) => {
    const vault = connect(t, server, tokenInFile(await tokenFile(t, server)))
    await server.seal()
    const answer = await issuerAt(vault, root).sign(askFor().attempt, never)
    assert.ok(answer.kind === 'unsent')
    assert.match(answer.why, /Vault is sealed/)
    await server.unseal()
    await eventually(
      'a certificate',
      async () => (await issuerAt(vault, root).sign(askFor().attempt, never)).kind === 'returned',
    )
  })
})
