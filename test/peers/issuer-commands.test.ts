// `muster issuer` with a real step-ca and a real Vault: added, set up there with what it prints, tested, named by a profile, and changed.

import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { IssuerTest, IssuerView } from '#wire/issuers/issuer-api.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { toPem } from '#pki/pem.ts'
import { withPeer } from './peer.ts'
import { startStepCa } from './step-ca.ts'
import { runVaultCommands } from './vault-commands.ts'
import { startVault } from './vault-server.ts'
import { mount, setUpPki, tokenFile } from './vault-set-up.ts'

test('a step-ca is added, gets the root for renewals that the plane has made, passes its test and is named by a profile', async (t) => {
  const binary = withPeer(t, 'step-ca')
  if (binary === null) return
  const server = await startStepCa(t, binary)
  const plane = await startPlane(t)
  const folder = tempFolder(t)
  const write = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const key = createPrivateKey(server.provisioner.key.pkcs8Pem()).export({ format: 'jwk' })
  const jwk = JSON.stringify({ ...key, kid: server.provisioner.keyId })
  const root = write('root.pem', server.files.root)
  const muster = async (code: number, ...words: string[]) => {
    const ran = await plane.musterWith({ env: { PROVISIONER: jwk } }, 'issuer', ...words, '-o', 'json')
    assert.equal(ran.code, code, ran.stderr + ran.stdout)
    assert.ok(!`${ran.stdout}${ran.stderr}`.includes(String(key.d)), 'the private key is in an answer')
    return JSON.parse(ran.stdout) as unknown
  }
  const added = (await muster(
    0,
    ...['add', 'corp', '--at', server.address, '--server-ca', root, '--roots', root],
    ...['--provisioner', 'muster', '--renewal-provisioner', 'muster-renewal', '--provisioner-key', 'env:PROVISIONER'],
  )) as IssuerView

  // The step-ca has another root there: each fault has the line that makes it right.
  const early = (await muster(1, 'test', 'corp')) as IssuerTest
  assert.deepEqual(
    early.faults.map(({ setting }) => setting),
    ['authority.provisioners[muster-renewal].roots'],
    JSON.stringify(early.faults),
  )
  const roots = Buffer.from(added.renewal_root ?? '').toString('base64')
  assert.ok(early.faults[0]?.fix.includes(roots))
  await server.configure((config) => {
    config.authority.provisioners[1]['roots'] = roots
  })
  const passed = (await muster(0, 'test', 'corp')) as IssuerTest
  assert.deepEqual([passed.passed, passed.issuer.takes_serial, passed.issuer.revokes], [true, true, true])
  assert.deepEqual(
    [passed.issuer.longest_lifetime_ms, passed.issuer.secrets.includes('provisioner_key')],
    [86_400_000, true],
  )

  const named = await plane.api('PATCH', '/v1/profiles/gpu-cloud', { set: { 'certificate.issuer': 'corp' } })
  assert.equal(named.status, 200, JSON.stringify(named.body))
  const node = await activeNode(plane, 'gpu-001')
  const leaf = new X509Certificate(node.identity().chainPem)
  assert.match(leaf.issuer, /issuing/i)
  assert.ok(leaf.checkIssued(new X509Certificate(server.files.issuing)))
  assert.equal((await node.renew()).reply.status, 200)
  const { body: receipt } = await plane.api('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  await eventually('both certificates to be revoked at the step-ca', async () => {
    const { body } = await plane.api('GET', `/v1/receipts/${receipt.id}`)
    return body.at_issuers?.passed_on === 2 && body.at_issuers.waiting === 0
  })
  const moved = await plane.musterWith({}, 'issuer', 'set', 'corp', '--at', 'https://127.0.0.1:1')
  assert.equal(moved.code, 0, moved.stderr)
  const away = (await muster(1, 'test', 'corp')) as IssuerTest
  assert.equal(away.faults[0]?.setting, 'address', JSON.stringify(away.faults))
  const refused = await plane.musterWith({}, 'issuer', 'retire', 'corp')
  assert.match(refused.stderr, /ISSUER_IN_USE/)
  for (const file of fs.readdirSync(plane.data, { recursive: true, withFileTypes: true }))
    if (file.isFile())
      assert.ok(
        !fs.readFileSync(path.join(file.parentPath, file.name)).includes(String(key.d)),
        `it is in ${file.name}`,
      )
})

test('a Vault whose role is for another domain says the command that makes it, and passes once that has been run', async (t) => {
  const binary = withPeer(t, 'vault')
  if (binary === null) return
  const peer = await startVault(t, binary)
  const root = await setUpPki(peer)
  const plane = await startPlane(t)
  const folder = tempFolder(t)
  const write = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const token = fs.readFileSync(await tokenFile(t, peer), 'utf8').trim()
  const ask = async (code: number, ...words: string[]) => {
    const ran = await plane.musterWith({ env: { VAULT_TOKEN: token } }, 'issuer', ...words, '-o', 'json')
    assert.equal(ran.code, code, ran.stderr + ran.stdout)
    assert.ok(!`${ran.stdout}${ran.stderr}`.includes(token), 'the token is in an answer')
    return JSON.parse(ran.stdout) as unknown
  }
  await ask(
    0,
    ...['add', 'vault', '--at', peer.address, '--server-ca', write('vault.pem', peer.roots)],
    ...['--roots', write('root.pem', toPem('CERTIFICATE', root)), '--mount', mount, '--role', '*=gpu-cloud'],
    ...['--auth', 'token', '--token', 'env:VAULT_TOKEN'],
  )
  const early = (await ask(1, 'test', 'vault')) as IssuerTest
  const [fault] = early.faults
  assert.match(fault?.fix ?? '', /^vault write muster-pki\/roles\/gpu-cloud /, JSON.stringify(early.faults))
  await runVaultCommands(peer, fault?.fix ?? '')
  const passed = (await ask(0, 'test', 'vault')) as IssuerTest
  assert.deepEqual(
    [passed.passed, passed.issuer.takes_serial, passed.issuer.revokes, passed.issuer.lists],
    [true, false, true, true],
  )
})
