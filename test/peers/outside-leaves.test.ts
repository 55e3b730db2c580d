// A leaf of a program and the certificate of a worker under a real step-ca and a real Vault, with a plane as a process: what OpenSSL makes of them,
// what they open, and their end.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import type { IssuerTest } from '#wire/issuers/issuer-api.ts'
import { act, succeeded } from '../compliance/ask-plane.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall, type Identity } from '../process/node-call.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { addStepCa, addVault, type AddedIssuer } from './added-issuers.ts'
import { documentedCommands } from './documented-block.ts'
import { withPeer } from './peer.ts'
import { runOpenssl } from './run-openssl.ts'
import { startStepCa } from './step-ca.ts'
import { runVaultCommands } from './vault-commands.ts'
import { startVault, type VaultPeer } from './vault-server.ts'
import { mount, page } from './vault-set-up.ts'

const web = { name: 'web', usage: 'server', dns: ['{name}'], addresses: true }
const east = cluster()

/** As a verifier outside Muster does it, which knows the root and nothing else. Returns the serial, as Muster writes it. */
const verified = (t: TestContext, chainPem: string, root: string, ...purpose: string[]): string => {
  const folder = tempFolder(t)
  const [leaf = '', ...above] = chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n?/g) ?? []
  const file = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const between = above.length === 0 ? [] : ['-untrusted', file('between.pem', above.join(''))]
  const strict = ['-x509_strict', '-check_ss_sig', '-no-CApath', '-no-CAstore', ...purpose]
  const trusted = ['-CAfile', file('root.pem', root)]
  const { status, text } = runOpenssl(['verify', ...strict, ...trusted, ...between, file('leaf.pem', leaf)])
  assert.equal(status, 0, text)
  const shown = runOpenssl(['x509', '-noout', '-serial', '-in', path.join(folder, 'leaf.pem')]).text
  return shown.trim().replace('serial=', '').toLowerCase().replace(/^0+/, '')
}

const identityOf = (key: PrivateKey, chainPem: string): Identity => ({ keyPem: key.pkcs8Pem(), chainPem })

const changeProfile = async (plane: Plane, ...outputs: object[]): Promise<void> =>
  void succeeded(await plane.api('PATCH', '/v1/profiles/gpu-cloud', { set: { outputs } }))

const tested = async (plane: Plane, name: string): Promise<IssuerTest> =>
  succeeded(await plane.api('POST', `/v1/issuers/${name}/test`, { outputs: ['web'], worker_issuers: ['east'] }))

const live = async (
  t: TestContext,
  plane: Plane,
  issuer: AddedIssuer,
  putRight: () => Promise<void>,
): Promise<void> => {
  await changeProfile(plane, web)
  const { iss, aud, sub, jwks } = east
  succeeded(
    await plane.api('POST', '/v1/worker-issuers', {
      ...{ name: 'east', iss, aud, sub, jwks: jwks(), types: [], vclusters: [] },
    }),
  )
  await putRight()
  const muster = async (...words: string[]): Promise<void> => {
    const ran = await plane.muster(...words)
    assert.equal(ran.code, 0, ran.stderr + ran.stdout)
  }
  await muster('issuer', 'test', issuer.name, '--output-name', 'web', '--worker-issuer', 'east')
  await changeProfile(plane, { ...web, issuer: issuer.name })
  await muster('worker-issuer', 'set', 'east', '--signed-by', issuer.name)

  const node = await activeNode(plane, 'leaf-1')
  succeeded(await plane.api('POST', '/v1/nodes/leaf-1/names/add', { names: ['web.example', '10.0.0.7'] }))
  const key = generateKey('p256')
  const csr = makeCsr(key, 'leaf-1/web')
  const { status, body } = await node.call('POST', '/v1/nodes/leaf-1/programs/web', { csr, outside_roots: true })
  assert.equal(status, 200, JSON.stringify(body))
  const named = ['-verify_hostname', 'web.example', '-verify_ip', '10.0.0.7']
  const serial = verified(t, body.certificate_chain, issuer.root, '-purpose', 'sslserver', ...named)
  assert.equal(body.outside_roots.length, 1)
  const bundle = succeeded(await plane.api('GET', '/v1/ca/bundle'))
  assert.ok(bundle.programs.includes(body.outside_roots[0]) && !bundle.roots.includes(body.outside_roots[0]))

  // It opens nothing here, and operators see who has signed it.
  const target = await plane.target()
  const leaf = identityOf(key, body.certificate_chain)
  const opened = await nodeCall(target, leaf, 'GET', '/v1/nodes/leaf-1/program-lists')
  assert.deepEqual([opened.status, opened.body.code], [401, 'CLIENT_CERT_UNKNOWN'])
  assert.match((await plane.muster('program', 'list')).stdout, new RegExp(`web .* ${issuer.name} `))
  assert.match((await plane.muster('node', 'show', 'leaf-1')).stdout, new RegExp(`issuer ${issuer.name}`))
  const view = succeeded(await plane.api('GET', `/v1/issuers/${issuer.name}`))
  assert.deepEqual([view.outputs, view.worker_issuers], [['web of gpu-cloud'], ['east']])
  assert.ok(Array.isArray(view.status.crl), 'who answers for its leaves is said')

  const workerKey = generateKey('ed25519')
  const enrolled = await nodeCall(target, null, 'POST', '/v1/workers/enroll', {
    ...{ token: east.token(), csr: makeCsr(workerKey, 'worker') },
  })
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  const { worker_id: id, certificate_chain: chain } = enrolled.body
  const workerSerial = verified(t, chain, issuer.root, '-purpose', 'sslclient')
  const worker = identityOf(workerKey, chain)
  const standing = () => nodeCall(target, worker, 'GET', `/v1/workers/${id}/certificate`)
  assert.equal((await standing()).status, 200)
  succeeded(await plane.api('POST', `/v1/workers/${id}/revoke`, { reason: 'leaked' }))
  assert.equal((await standing()).body.code, 'WORKER_REVOKED')
  await act(plane, 'leaf-1', 'revoke', { reason: 'stolen' })
  for (const one of [serial, workerSerial])
    await eventually(`${one} to be revoked at ${issuer.name}`, () => issuer.isRevoked(one))
  const { receipts } = succeeded(await plane.api('GET', '/v1/receipts'))
  for (const { id: receipt } of receipts)
    await eventually('the line of the receipt', async () => {
      const { at_issuers: at } = succeeded(await plane.api('GET', `/v1/receipts/${receipt}`))
      return at?.passed_on === 1 && at.waiting === 0
    })
}

const rolesFor = async (plane: Plane, peer: VaultPeer): Promise<void> => {
  const { vault } = succeeded(await plane.api('GET', '/v1/issuers/vault'))
  const without = await tested(plane, 'vault')
  assert.deepEqual(
    without.faults.map(({ fix }) => fix),
    ['muster issuer set ISSUER --role output:web=ROLE', 'muster issuer set ISSUER --role worker:east=ROLE'],
  )
  const roles = [
    { profile: 'output:web', role: 'web' },
    { profile: 'worker:*', role: 'workers' },
  ]
  succeeded(await plane.api('PATCH', '/v1/issuers/vault', { vault: { ...vault, roles } }))
  // There is none yet, and the policy knows nothing of it: the test says what to write.
  const missing = await tested(plane, 'vault')
  const whys = missing.faults.map(({ why }) => why)
  assert.ok(whys.includes(`the login may not update ${mount}/sign/web`), JSON.stringify(whys))
  await runVaultCommands(peer, documentedCommands(page, 'sign/workers'))
  for (let times = 0; times < 3; times++)
    for (const { fix } of (await tested(plane, 'vault')).faults) await runVaultCommands(peer, fix)
}

describe('leaves of programs and workers', { concurrency: true }, () => {
  test('under a step-ca', async (t) => {
    const binary = withPeer(t, 'step-ca')
    if (binary === null || withPeer(t, 'openssl') === null) return
    const [server, plane] = await Promise.all([startStepCa(t, binary), startPlane(t)])
    await live(t, plane, await addStepCa(plane, server, 'corp'), async () => {})
  })

  test('under a Vault, which has a role for each', async (t) => {
    const binary = withPeer(t, 'vault')
    if (binary === null || withPeer(t, 'openssl') === null) return
    const [peer, plane] = await Promise.all([startVault(t, binary), startPlane(t)])
    await live(t, plane, await addVault(plane, peer, 'vault'), () => rolesFor(plane, peer))
  })
})
