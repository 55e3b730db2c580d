// What `issuer test` finds at a real Vault: each fault of roles, policies, mounts and CAs is named, and the command that is printed makes it right.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keyTypes } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { roleLine } from '#domain/issuers/vault-role.ts'
import { spkiHash } from '#pki/keys.ts'
import { fromPem } from '#pki/pem.ts'
import { documentedCommands } from './documented-block.ts'
import { peer, suiteWith } from './peer.ts'
import { runVaultCommands } from './vault-commands.ts'
import {
  askFor,
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

describe('the settings of Vault', suiteWith(peer('vault')), () => {
  const there = vaultOfSuite()

  const rolePath = `${mount}/roles/gpu-cloud`
  const documentedRole = documentedCommands(page, 'allowed_uri_sans=')
  const certs = async (): Promise<number> =>
    (dataOf((await there.server.call('LIST', `${mount}/certs`)).body)['keys'] as readonly string[]).length

  const right = (): Promise<unknown> => runVaultCommands(there.server, documentedRole)

  /** Vault replaces a role as a whole. */
  const changeRole = async (change: object): Promise<void> => {
    const { body } = await there.server.call('GET', rolePath)
    const changed = await there.server.call('POST', rolePath, { ...dataOf(body), ...change })
    assert.ok(changed.status < 300, JSON.stringify(changed))
  }

  test('the role of the page is the one that a new role is made right with, and passes the test', async () => {
    const needs = { ...askFor().attempt.order, keyTypes }
    const [page, line] = [documentedRole, roleLine(rolePath, null, needs)].map((text) => wordsOf(text).toSorted())
    assert.deepEqual(page, line)
    const before = await certs()
    assert.deepEqual(await there.issuer.test(never), [])
    assert.deepEqual(there.issuer.abilities, { takesSerial: false, revokes: true, lists: true })
    assert.equal(await certs(), before + 1)
  })

  const wordsOf = (text: string): string[] =>
    text
      .replaceAll('\\\n', ' ')
      .replaceAll("'", '')
      .split(/\s+/)
      .filter((word) => word !== '')

  describe('each setting of a role that is wrong is named, with the command that makes it right', () => {
    const wrong: readonly (readonly [setting: string, change: object])[] = [
      ['key_type', { key_type: 'ec', key_bits: 256 }],
      ['organization', { organization: 'another' }],
      ['organization', { organization: '' }],
      ['ou', { ou: ['nodes', 'machines'] }],
      ['country', { country: 'DE' }],
      ['locality', { locality: 'Berlin' }],
      ['key_usage', { key_usage: ['DigitalSignature', 'KeyAgreement'] }],
      ['key_usage', { key_usage: [] }],
      ['client_flag', { client_flag: false }],
      ['server_flag', { server_flag: true }],
      ['code_signing_flag', { code_signing_flag: true }],
      ['ext_key_usage', { ext_key_usage: ['OCSPSigning'] }],
      ['ext_key_usage_oids', { ext_key_usage_oids: ['1.3.6.1.5.5.7.3.9'] }],
      ['use_csr_common_name', { use_csr_common_name: true }],
      ['use_csr_sans', { use_csr_sans: true }],
      ['serial_number_source', { serial_number_source: 'json-csr' }],
      ['allowed_user_ids', { allowed_user_ids: '*' }],
      ['cn_validations', { cn_validations: 'hostname' }],
      ['allowed_uri_sans', { allowed_uri_sans: 'spiffe://example.com/*' }],
      ['generate_lease', { generate_lease: true }],
      ['not_after', { not_after: '2030-01-01T00:00:00Z' }],
      ['max_ttl', { max_ttl: '12h' }],
      ['not_before_duration', { not_before_duration: '1h' }],
    ]
    test('in all of these cases', async () => {
      for (const [setting, change] of wrong) {
        await right()
        await changeRole(change)
        const faults = await there.issuer.test(never)
        assert.deepEqual(
          faults.map((one) => one.setting),
          [`${setting} of ${rolePath}`],
          JSON.stringify(change),
        )
        await runVaultCommands(there.server, faults[0]!.fix)
        assert.deepEqual(await there.issuer.test(never), [], `${setting}: ${faults[0]!.fix}`)
      }
    })

    test('several of one role at once, and what else was set there stays', async () => {
      await there.server.call('POST', rolePath, { allowed_domains: ['a.example', 'b.example'], ttl: '2h' })
      const faults = await there.issuer.test(never)
      assert.ok(faults.length > 8)
      assert.equal(new Set(faults.map(({ fix }) => fix)).size, 1)
      await runVaultCommands(there.server, faults[0]!.fix)
      assert.deepEqual(await there.issuer.test(never), [])
      const role = dataOf((await there.server.call('GET', rolePath)).body)
      assert.deepEqual([role['allowed_domains'], role['ttl']], [['a.example', 'b.example'], 7200])
      await right()
    })

    test('a name with a comma in it is written as JSON', async () => {
      const profile = structuredClone(shippedProfiles.find(({ name }) => name === 'gpu-cloud')!)
      Object.assign(profile.certificate.subject, { o: "Example's, Inc." })
      const other = issuerAt(there.vault, there.root, { samples: () => Promise.resolve([sampleOf(profile)]) })
      const [fault] = await other.test(never)
      assert.equal(fault?.setting, `organization of ${rolePath}`)
      await runVaultCommands(there.server, fault.fix)
      assert.deepEqual(await other.test(never), [])
      await right()
    })

    test('a mount that allows no such lifetime, where the role does not say one', async () => {
      await changeRole({ max_ttl: 0 })
      await there.server.call('POST', `sys/mounts/${mount}/tune`, { max_lease_ttl: '20h' })
      const [fault, ...others] = await there.issuer.test(never)
      assert.deepEqual([fault?.setting, others], [`max_ttl of ${rolePath}`, []])
      assert.match(fault!.why, /239 minutes shorter|240 minutes shorter|241 minutes shorter/)
      await runVaultCommands(there.server, fault!.fix)
      assert.deepEqual(await there.issuer.test(never), [])
      await there.server.call('POST', `sys/mounts/${mount}/tune`, { max_lease_ttl: '87600h' })
    })

    test('another CA of the same mount, which nobody has put on record', async () => {
      const other = await there.server.call('POST', `${mount}/root/generate/internal`, {
        ...{ common_name: 'another', key_type: 'ec', key_bits: 256, issuer_name: 'another', ttl: '8760h' },
      })
      assert.equal(other.status, 200, JSON.stringify(other))
      await changeRole({ issuer_ref: 'another' })
      assert.deepEqual(
        (await there.issuer.test(never)).map(({ setting }) => setting),
        [`issuer_ref of ${rolePath}`],
      )
      await right()
      assert.deepEqual(await there.issuer.test(never), [])
    })

    test('a role that keeps nothing: it signs, and can neither revoke nor find', async () => {
      await changeRole({ no_store: true })
      assert.deepEqual(await there.issuer.test(never), [])
      assert.deepEqual(there.issuer.abilities, { takesSerial: false, revokes: false, lists: false })
      const asked = askFor()
      const serial = serialOf(await signed(there.issuer, asked))
      assert.equal(await there.issuer.find(spkiHash(asked.key.spki), () => Promise.resolve(false), never), null)
      assert.equal(await there.issuer.revoke(serial, 'superseded', never), 'unknown there')
      await right()
      assert.deepEqual(await there.issuer.test(never), [])
      assert.equal(there.issuer.abilities.lists, true)
    })
  })

  describe('a CA', () => {
    const urls = (json: object): Promise<unknown> => there.server.call('POST', `${mount}/config/urls`, json)

    test('that names who answers for it is taken; where changes to its list are is named as a setting', async () => {
      await urls({
        ocsp_servers: 'http://o.example',
        crl_distribution_points: 'http://c.example',
        issuing_certificates: 'http://i.example',
      })
      assert.deepEqual(await there.issuer.test(never), [])
      await urls({ delta_crl_distribution_points: 'http://d.example' })
      const [fault] = await there.issuer.test(never)
      assert.equal(fault?.setting, `${mount}/config/urls`)
      await runVaultCommands(there.server, fault.fix)
      assert.deepEqual(await there.issuer.test(never), [])
    })

    test('below a root that Vault does not have, with the whole chain in the mount', async () => {
      await runVaultCommands(there.server, 'vault secrets enable -path=above -max-lease-ttl=87600h pki')
      const ca = { key_type: 'ec', key_bits: 384, ttl: '8760h' }
      const above = await there.server.call('POST', 'above/root/generate/internal', { common_name: 'above', ...ca })
      const rootPem = String(dataOf(above.body)['certificate'])
      const made = await there.server.call('POST', `${mount}/intermediate/generate/internal`, {
        common_name: 'below',
        ...ca,
      })
      const csr = dataOf(made.body)['csr']
      const below = await there.server.call('POST', 'above/root/sign-intermediate', {
        csr,
        ttl: '4380h',
        max_path_length: 0,
      })
      const certificate = `${String(dataOf(below.body)['certificate'])}\n${rootPem}`
      const imported = await there.server.call('POST', `${mount}/intermediate/set-signed`, { certificate })
      const [first] = dataOf(imported.body)['imported_issuers'] as readonly string[]
      await changeRole({ issuer_ref: first })
      const other = issuerAt(there.vault, fromPem('CERTIFICATE', rootPem)!)
      assert.deepEqual(await other.test(never), [])
      const asked = askFor()
      const verdict = judged(asked, await signed(other, asked), fromPem('CERTIFICATE', rootPem)!)
      assert.ok(verdict.kind === 'as-ordered', JSON.stringify(verdict))
      assert.equal(verdict.above.length, 2)
      await right()
    })

    test('with an RSA key is refused with a sentence', async () => {
      const ca = { common_name: 'rsa', key_type: 'rsa', key_bits: 2048, issuer_name: 'rsa', ttl: '8760h' }
      assert.equal((await there.server.call('POST', `${mount}/root/generate/internal`, ca)).status, 200)
      await changeRole({ issuer_ref: 'rsa' })
      const [fault, ...others] = await there.issuer.test(never)
      assert.deepEqual([fault?.setting, others], [`issuer_ref of ${rolePath}`, []])
      assert.match(fault!.why, /its CA needs a key on P-256 or P-384, or an Ed25519 key/)
      await right()
    })
  })

  test('a role made by the printed command serves each profile that ships, and one without any names', async () => {
    const bare = structuredClone(shippedProfiles[0]!)
    Object.assign(bare, { name: 'bare' })
    Object.assign(bare.certificate, { uriSan: false, subject: { cn: 'n-{id}', o: '', ou: '' } })
    const policies: string[] = []
    for (const profile of [...shippedProfiles, bare]) {
      const role = `made-for-${profile.name}`
      policies.push(`path "${mount}/+/${role}" { capabilities = ["read", "update"] }`)
      await runVaultCommands(there.server, withPolicies(policies))
      const one = issuerAt(there.vault, there.root, {
        roles: { [profile.name]: role },
        samples: () => Promise.resolve([sampleOf(profile)]),
      })
      const [missing, ...others] = await one.test(never)
      assert.deepEqual([missing?.why, others], ['there is no such role', []])
      await runVaultCommands(there.server, missing!.fix)
      assert.deepEqual(await one.test(never), [], profile.name)
    }
  })

  const withPolicies = (lines: readonly string[]): string =>
    documentedCommands(page, 'policy write muster-issuer').replace(/^END$/m, `${lines.join('\n')}\nEND`)

  describe('what is missing is named', () => {
    const policy = 'policy write muster-issuer'

    test('each line of the policy, and the line alone makes it right', async () => {
      const block = documentedCommands(page, policy)
      const lines = block.split('\n').filter((line) => line.startsWith('path '))
      assert.equal(lines.length, 4)
      for (const line of lines) {
        await runVaultCommands(there.server, block.replace(`${line}\n`, ''))
        const faults = await there.issuer.test(never)
        assert.ok(faults.length > 0, line)
        assert.deepEqual([...new Set(faults.map(({ fix }) => fix))], [line])
      }
      await runVaultCommands(there.server, block)
      assert.deepEqual(await there.issuer.test(never), [])
    })

    test('permission to sign, in the answer to a request', async () => {
      const block = documentedCommands(page, policy)
      await runVaultCommands(there.server, block.replace('capabilities = ["update"]', 'capabilities = ["deny"]'))
      const answer = await there.issuer.sign(askFor().attempt, never)
      assert.deepEqual(answer, {
        kind: 'unsigned',
        why: `permission denied: the policy of the login has to allow update on ${mount}/sign/gpu-cloud`,
      })
      await runVaultCommands(there.server, block)
    })

    test('a role, and the command that makes it is that of the page', async () => {
      const other = issuerAt(there.vault, new Uint8Array(), { roles: { '*': 'missing' } })
      await runVaultCommands(there.server, documentedCommands(page, policy).replaceAll('gpu-cloud', 'missing'))
      const [fault] = await other.test(never)
      assert.equal(fault?.setting, `${mount}/roles/missing`)
      assert.deepEqual(
        wordsOf(fault.fix).toSorted(),
        wordsOf(documentedRole.replaceAll('gpu-cloud', 'missing')).toSorted(),
      )
      const answer = await other.sign(askFor().attempt, never)
      assert.ok(answer.kind === 'unsigned')
      assert.match(answer.why, /sign\/missing: unknown role: missing/)
      await runVaultCommands(there.server, documentedCommands(page, policy))
    })

    test('a secrets engine', async () => {
      const policies = documentedCommands(page, policy).replaceAll(mount, 'nothing')
      await runVaultCommands(there.server, policies)
      const other = issuerAt(there.vault, there.root, { mount: 'nothing' })
      assert.deepEqual(
        (await other.test(never)).map(({ setting }) => setting),
        ['mount'],
      )
      const answer = await other.sign(askFor().attempt, never)
      assert.deepEqual(answer, { kind: 'unsigned', why: 'there is no secrets engine at nothing' })
      await runVaultCommands(there.server, documentedCommands(page, policy))
    })

    test('a role for the profile', async () => {
      const other = issuerAt(there.vault, there.root, { roles: { 'hpc-diskless': 'gpu-cloud' } })
      assert.deepEqual(
        (await other.test(never)).map(({ setting, fix }) => [setting, fix]),
        [['role', 'muster issuer set ISSUER --role gpu-cloud=ROLE']],
      )
    })
  })
})
