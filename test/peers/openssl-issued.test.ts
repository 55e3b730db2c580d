// OpenSSL judges what real planes give out: every profile that can join without a TPM, every key type, both custodies of
// the issuing key; then it talks to the plane with it.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { keyTypes } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { activeNode } from '../process/active-node.ts'
import type { Identity, NodeTarget } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const openssl = (program: string, args: readonly string[], input = ''): string => {
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8' })
  assert.equal(status, 0, `openssl ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout
}

const certificatesIn = (pem: string): string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []

const fileWith = (folder: string, name: string, text: string): string => {
  const file = path.join(folder, name)
  fs.writeFileSync(file, text, { mode: 0o600 })
  return file
}

/** `chain`: the certificate in question and those above it, without the root. */
const verify = (t: TestContext, program: string, roots: string, chain: readonly string[], more: readonly string[]) => {
  const folder = tempFolder(t)
  const trusted = ['-CAfile', fileWith(folder, 'roots.pem', roots), '-no-CApath', '-no-CAstore']
  const between = chain.slice(1).join('')
  const untrusted = between === '' ? [] : ['-untrusted', fileWith(folder, 'between.pem', between)]
  const certificate = fileWith(folder, 'certificate.pem', chain[0] ?? '')
  openssl(program, ['verify', '-x509_strict', '-check_ss_sig', ...trusted, ...untrusted, ...more, certificate])
}

/** An HTTP request over `openssl s_client`, which verifies the server as strictly as it can. */
const sClient = (t: TestContext, program: string, target: NodeTarget, identity: Identity, request: string): string => {
  const folder = tempFolder(t)
  const { hostname, port } = new URL(target.url)
  const [certificate = '', ...above] = certificatesIn(identity.chainPem)
  const files = {
    '-CAfile': fileWith(folder, 'roots.pem', target.roots.join('')),
    '-cert': fileWith(folder, 'node.pem', certificate),
    '-cert_chain': fileWith(folder, 'chain.pem', above.join('')),
    '-key': fileWith(folder, 'node.key', identity.keyPem),
  }
  const strict = ['-verify_return_error', '-x509_strict', '-verify_hostname', hostname, '-no-CApath', '-no-CAstore']
  const to = ['-connect', `127.0.0.1:${port}`, '-servername', hostname, '-tls1_3', '-quiet']
  return openssl(program, ['s_client', ...to, ...strict, ...Object.entries(files).flat()], request)
}

const request = (target: NodeTarget, line: string, body: string): string =>
  [
    `${line} HTTP/1.1`,
    `Host: ${new URL(target.url).host}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')

const secretFor = async (plane: Plane, asked: object): Promise<string> => {
  const { status, body } = await plane.api('POST', '/v1/tokens', asked)
  assert.equal(status, 201, JSON.stringify(body))
  return body.secret
}

/** Every way in that needs no TPM; the last profile is one of ours with all that a profile may add or leave out. */
const ways: Readonly<Record<string, (plane: Plane, node: RawNode, id: string, mac: string) => Promise<Reply>>> = {
  'gpu-cloud': async (plane, node, id) => node.enrollByToken(await secretFor(plane, { node: id })),
  'mesh-paas': async (plane, node, id) =>
    node.enrollByToken(await secretFor(plane, { profile: 'mesh-paas' }), { node_id: id }),
  'hpc-diskless': async (plane, node, id, mac) => {
    await plane.api('POST', '/v1/nodes', { id, profile: 'hpc-diskless', macs: [mac] })
    return node.enrollByHardware({ macs: [mac], bmc_serial: null })
  },
  'of-our-own': async (plane, node, id) => {
    const url = 'http://pki.example.test/issuer'
    const set = { 'certificate.uriSan': false, 'certificate.aiaUrl': url, 'certificate.cdpUrl': url }
    await plane.api('POST', '/v1/profiles', { name: 'of-our-own', set })
    return node.enrollByToken(await secretFor(plane, { node: id, profile: 'of-our-own' }))
  },
}

test('every shipped profile is either joined here or needs a TPM', () => {
  for (const { name, join } of shippedProfiles) assert.equal(name in ways, !join.allOf.includes('tpm'), name)
})

for (const custody of ['file', 'memory'] as const) {
  describe(`a plane with its issuing key in ${custody}`, () => {
    const plane = sharedPlane({ args: ['--issuer-key', custody] })

    for (const [at, [profile, joinBy]] of Object.entries(ways).entries()) {
      test(`OpenSSL trusts what a node of profile ${profile} gets, with every type of key, and completes mTLS with it`, async (t) => {
        const program = withPeer(t, 'openssl')
        if (program === null) return
        const target = await plane().target()
        for (const [of, type] of keyTypes.entries()) {
          const node = rawNode(target, type)
          const id = `${profile}-${type}`
          const enrolled = await joinBy(plane(), node, id, `02:00:00:00:0${at}:0${of}`)
          assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
          const { roots, certificate_chain: chain } = enrolled.body
          verify(t, program, roots.join(''), certificatesIn(chain), ['-purpose', 'sslclient'])
          const confirm = request(target, `POST /v1/nodes/${id}/confirm`, '{}')
          assert.match(
            sClient(t, program, target, node.identity(), confirm),
            /^HTTP\/1\.1 200 [^]*"membership":"active"/,
          )

          const { reply, identity } = await node.renew()
          assert.ok(identity !== null, JSON.stringify(reply.body))
          verify(t, program, reply.body.roots.join(''), certificatesIn(identity.chainPem), ['-purpose', 'sslclient'])
          assert.match(sClient(t, program, target, identity, confirm), /^HTTP\/1\.1 200 /)
          assert.match(sClient(t, program, target, identity, request(target, 'GET /v1/bundle', '')), /^HTTP\/1\.1 200 /)
        }
      })
    }

    test('OpenSSL trusts the server certificate by name and address, and everything above it', async (t) => {
      const program = withPeer(t, 'openssl')
      if (program === null) return
      const roots = (await plane().muster('ca', 'bundle')).stdout
      assert.deepEqual(certificatesIn(roots), (await plane().target()).roots)
      const to = ['-connect', `127.0.0.1:${plane().nodePort}`, '-servername', 'localhost']
      const presented = certificatesIn(openssl(program, ['s_client', '-showcerts', ...to]))
      assert.equal(presented.length, custody === 'file' ? 3 : 4)
      assert.equal(presented.at(-1), roots, 'the chain includes the root')
      for (const name of [
        ['-verify_hostname', 'localhost'],
        ['-verify_ip', '127.0.0.1'],
        ['-verify_ip', '::1'],
      ]) {
        verify(t, program, roots, presented.slice(0, -1), ['-purpose', 'sslserver', ...name])
      }
      for (const [at, certificate] of presented.entries()) {
        verify(t, program, roots, presented.slice(at, at === presented.length - 1 ? undefined : -1), [
          '-purpose',
          'any',
        ])
        assert.match(openssl(program, ['x509', '-noout', '-text'], certificate), /Version: 3/)
      }
      const sha256 = openssl(program, ['x509', '-noout', '-fingerprint', '-sha256'], roots).trim()
      assert.equal(sha256.replace(/^.*=/, '').replaceAll(':', '').toLowerCase(), plane().rootFingerprint)
    })

    test('OpenSSL trusts what is issued after a rotation as well as what was issued before', async (t) => {
      const program = withPeer(t, 'openssl')
      if (program === null) return
      const target = await plane().target()
      const [before, after] = [rawNode(target, 'p256'), rawNode(target, 'p256')]
      await before.enrollByToken(await secretFor(plane(), { node: 'before' }))
      assert.equal((await plane().muster('ca', 'rotate')).code, 0)
      await after.enrollByToken(await secretFor(plane(), { node: 'after' }))
      for (const node of [before, after]) {
        const identity = node.identity()
        verify(t, program, target.roots.join(''), certificatesIn(identity.chainPem), ['-purpose', 'sslclient'])
        const confirm = request(target, `POST /v1/nodes/${node.id()}/confirm`, '{}')
        assert.match(sClient(t, program, target, identity, confirm), /^HTTP\/1\.1 200 /)
      }
    })

    test('OpenSSL refuses a node certificate as that of a server, so that its yes means something', async (t) => {
      const program = withPeer(t, 'openssl')
      if (program === null) return
      const node = await activeNode(plane(), 'gpu-001')
      const chain = certificatesIn(node.identity().chainPem)
      const roots = node.target.roots.join('')
      verify(t, program, roots, chain, ['-purpose', 'sslclient'])
      assert.throws(
        () => verify(t, program, roots, chain, ['-purpose', 'sslserver']),
        /unsuitable certificate purpose|unsupported certificate purpose/,
      )
    })
  })
}
