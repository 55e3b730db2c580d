// `issuer test` against a real step-ca: nothing to say of one that is set up as the page has it, and each setting that is wrong is named, with
// the line of the page.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { SettingFault } from '#plane/issuers/outside-signer.ts'
import type { StepCaOptions } from '#plane/issuers/step-ca.ts'
import { templateLines } from '#plane/issuers/step-ca-settings.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { documentedBlock } from './documented-block.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { type CaConfig, type CaFiles, caFiles, signerOf, startStepCa, type StepCaServer } from './step-ca.ts'

const never = new AbortController().signal

const started = async (t: TestContext, files?: CaFiles): Promise<StepCaServer | null> => {
  const binary = withPeer(t, 'step-ca')
  return binary === null ? null : startStepCa(t, binary, files === undefined ? {} : { files })
}

const testOf = (
  t: TestContext,
  server: StepCaServer,
  more: Partial<StepCaOptions> = {},
): Promise<readonly SettingFault[]> => signerOf(t, server, more).test(never)

const settingsIn = (faults: readonly SettingFault[]): string[] => faults.map(({ setting }) => setting)

/** What is said after a change of `ca.json`, and the lines that make it right. */
const after = async (t: TestContext, server: StepCaServer, change: (config: CaConfig) => void) => {
  await server.configure(change)
  return testOf(t, server)
}

test('one that is set up as the page has it has no faults, and keeps nothing of the test', async (t) => {
  const server = await started(t)
  if (server === null) return
  const signer = signerOf(t, server)
  assert.deepEqual(await signer.test(never), [])
  assert.equal(signer.abilities.revokes, true)
})

test('each line of the template that the test names is a line of the page', () => {
  const template = documentedBlock('issuers/STEP-CA.md', 'go-template')
  for (const line of Object.values(templateLines)) assert.ok(template.includes(line), line)
})

test('a provisioner that is missing, or has another key or root', async (t) => {
  const server = await started(t)
  if (server === null) return
  const missing = await after(t, server, (config) => {
    for (const provisioner of config.authority.provisioners) provisioner['name'] = `no-${String(provisioner['name'])}`
  })
  assert.deepEqual(settingsIn(missing), ['authority.provisioners', 'authority.provisioners'])
  assert.match(
    missing.map(({ why }) => why).join('\n'),
    /no JWK provisioner named muster\n.*no X5C provisioner named muster-renewal/,
  )

  const key = { ...server.provisioner, key: generateKey('p256') }
  await server.configure(() => {})
  const [wrongKey] = await testOf(t, server, { enrollment: key })
  assert.deepEqual(
    [wrongKey?.setting, wrongKey?.why],
    ['authority.provisioners[muster].key', 'its key is not the public half of the one here'],
  )
  assert.match(wrongKey?.fix ?? '', /^"key": \{ .*"kid": "muster-2026"/)
  const [wrongId] = await testOf(t, server, { enrollment: { ...server.provisioner, keyId: 'other' } })
  assert.match(wrongId?.why ?? '', /its key has the id muster-2026, and the one here has other/)

  const ownRoot = Buffer.from(server.files.root).toString('base64')
  const [wrongRoot] = await after(t, server, ({ authority }) => void (authority.provisioners[1]['roots'] = ownRoot))
  assert.deepEqual(
    [wrongRoot?.setting, wrongRoot?.why],
    ['authority.provisioners[muster-renewal].roots', 'it lacks the root of the credential for renewals'],
  )
  // The line that it prints makes it right.
  const right = JSON.parse(`{ ${wrongRoot?.fix} }`) as { roots: string }
  assert.deepEqual(
    await after(t, server, ({ authority }) => void (authority.provisioners[1]['roots'] = right.roots)),
    [],
  )
})

test('a root beside that of the credential gives every node every name', async (t) => {
  const server = await started(t)
  if (server === null) return
  const both = toPem('CERTIFICATE', server.renewalRoot.certificate.der) + server.files.root
  const faults = await after(t, server, ({ authority }) => {
    authority.provisioners[1]['roots'] = Buffer.from(both).toString('base64')
  })
  const setting = 'authority.provisioners[muster-renewal].roots'
  assert.deepEqual(settingsIn(faults), [setting, setting])
  // Read, and tried.
  assert.deepEqual(
    faults.map(({ why }) => why.split(':')[0]),
    [
      'it has more roots than that of the credential for renewals',
      'it takes the certificate of a node for a credential',
    ],
  )
})

test('its own template, one that lacks a line, and one that is no JSON', async (t) => {
  const server = await started(t)
  if (server === null) return
  const without = await after(t, server, ({ authority }) => {
    for (const provisioner of authority.provisioners) delete provisioner.options
  })
  assert.deepEqual(settingsIn(without), [
    'authority.provisioners[muster].options.x509',
    'authority.provisioners[muster-renewal].options.x509',
  ])
  assert.match(
    without[0]?.why ?? '',
    /without the template: .*subject: .*subjectAltName: .*extendedKeyUsage: .*serial: /,
  )

  const template = documentedBlock('issuers/STEP-CA.md', 'go-template')
  for (const [field, line] of Object.entries(templateLines)) {
    server.writeTemplate(template.replace(line, field === 'extendedKeyUsage' ? '"extKeyUsage": []' : ''))
    const faults = await after(t, server, () => {})
    const named = faults.filter(({ setting }) => setting.startsWith('authority.provisioners[muster].'))
    assert.deepEqual(
      named.map(({ fix }) => fix),
      [line],
      `${field}: ${JSON.stringify(faults)}`,
    )
  }
  server.writeTemplate('{ "subject": ')
  const broken = await after(t, server, () => {})
  assert.match(broken[0]?.why ?? '', /template/)
  assert.equal(broken[0]?.setting, 'authority.provisioners[muster].options.x509')
})

test('what it adds to a subject, a short maximum, a long minimum, and far too much backdating', async (t) => {
  const server = await started(t)
  if (server === null) return
  const faults = await after(t, server, (config) => void (config.authority['template'] = { country: 'CH' }))
  assert.deepEqual(settingsIn(faults), ['authority.template'])
  assert.match(faults[0]?.why ?? '', /C=CH/)
  const short = await after(t, server, ({ authority }) => {
    for (const { claims } of authority.provisioners) delete claims['maxTLSCertDuration']
    authority.provisioners[0].claims['maxTLSCertDuration'] = '12h'
    authority.provisioners[0].claims['defaultTLSCertDuration'] = '12h'
  })
  assert.deepEqual(
    short.map(({ setting, fix }) => [setting, fix]),
    [['authority.provisioners[muster].claims.maxTLSCertDuration', '"maxTLSCertDuration": "24h10m"']],
  )
  const long = await after(t, server, ({ authority }) => {
    Object.assign(authority.provisioners[1].claims, {
      minTLSCertDuration: '48h',
      defaultTLSCertDuration: '48h',
      maxTLSCertDuration: '48h',
    })
  })
  assert.deepEqual(
    long.map(({ setting, fix }) => [setting, fix]),
    [['authority.provisioners[muster-renewal].claims.minTLSCertDuration', '"minTLSCertDuration": "24h0m"']],
  )
  const early = await after(t, server, ({ authority }) => void (authority['backdate'] = '1h'))
  assert.deepEqual([...new Set(settingsIn(early))], ['authority.backdate'])
})

test('renewal by nodes, and no database', async (t) => {
  const server = await started(t)
  if (server === null) return
  const renews = await after(
    t,
    server,
    ({ authority }) => void delete authority.provisioners[0].claims['disableRenewal'],
  )
  assert.deepEqual(
    renews.map(({ setting, fix }) => [setting, fix]),
    [['authority.provisioners[muster].claims.disableRenewal', '"disableRenewal": true']],
  )
  // With neither a database nor its own extension it does not find the setting again.
  const blind = await after(t, server, (config) => {
    delete config.db
    config.authority.provisioners[1].claims['disableSmallstepExtensions'] = true
  })
  assert.deepEqual(
    blind.map(({ setting, fix }) => [setting, fix]),
    [
      [
        'authority.provisioners[muster-renewal].claims.disableSmallstepExtensions',
        '"disableSmallstepExtensions": false',
      ],
      ['db', '"db": { "type": "badgerv2", "dataSource": "/var/lib/step-ca/db" }'],
    ],
  )
  await server.configure((config) => void delete config.db)
  const signer = signerOf(t, server)
  assert.deepEqual(settingsIn(await signer.test(never)), ['db'])
  assert.equal(signer.abilities.revokes, false)
  await assert.rejects(signer.revoke('1', 'unspecified', never), /has no database/)
})

test('another root, another name, and RSA keys', async (t) => {
  const server = await started(t)
  const openssl = withPeer(t, 'openssl')
  if (server === null || openssl === null) return
  const [other] = await testOf(t, server, { serverRoots: [caFiles().root] })
  assert.equal(other?.setting, 'root')
  const localhost = server.address.replace('127.0.0.1', 'localhost')
  const [name] = await testOf(t, server, { address: localhost })
  assert.deepEqual([name?.setting, name?.fix], ['dnsNames', '"dnsNames": ["localhost"]'])

  const rsa = rsaFiles(t, openssl)
  const withRsa = await started(t, rsa)
  if (withRsa === null) return
  const [refused] = await testOf(t, withRsa)
  assert.deepEqual(
    [refused?.setting, refused?.why],
    ['root', 'neither the plane nor agents can use its root: a signature by an RSA key; use Ed25519, P-256 or P-384'],
  )
})

test('it is not reached', async (t) => {
  const server = await started(t)
  if (server === null) return
  await server.stop()
  await assert.rejects(testOf(t, server), /no connection \(ECONNREFUSED\)/)
})

const rsaFiles = (t: TestContext, openssl: string): CaFiles => {
  const folder = tempFolder(t)
  const at = (name: string): string => path.join(folder, name)
  const make = (name: string, ...more: string[]): string => {
    const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', at(`${name}.key`), '-out', at(`${name}.crt`)]
    const ca = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign']
    const made = spawnSync(openssl, ['req', '-x509', '-days', '30', '-subj', `/CN=${name}`, ...ca, ...key, ...more])
    assert.equal(made.status, 0, made.stderr.toString())
    return fs.readFileSync(at(`${name}.crt`), 'utf8')
  }
  const root = make('root')
  const issuing = make('issuing', '-CA', at('root.crt'), '-CAkey', at('root.key'))
  return { root, issuing, issuingKey: fs.readFileSync(at('issuing.key'), 'utf8') }
}
