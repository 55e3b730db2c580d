// Others verify our certificates: OpenSSL with our revocation lists and against our OCSP responder, on real planes.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { activeNode } from '../process/active-node.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import type { RawNode } from '../process/raw-node.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const certificatesIn = (pem: string): string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []

type Files = { readonly leaf: string; readonly issuer: string; readonly between: string; readonly roots: string }

const filesOf = (folder: string, node: RawNode): Files => {
  const [leaf = '', issuer = '', ...above] = certificatesIn(node.identity().chainPem)
  const file = (name: string, text: string): string => {
    const at = path.join(folder, `${node.id()}-${name}.pem`)
    fs.writeFileSync(at, text)
    return at
  }
  return {
    leaf: file('leaf', leaf),
    issuer: file('issuer', issuer),
    between: file('between', [issuer, ...above].join('')),
    roots: file('roots', node.target.roots.join('')),
  }
}

const ran = (program: string, args: readonly string[]): { readonly code: number | null; readonly said: string } => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  return { code: status, said: stdout + stderr }
}

/** What OpenSSL makes of a leaf with these lists: `OK`, or what is wrong with it. */
const verified = (openssl: string, { leaf, between, roots }: Files, lists: string, ...more: string[]): string => {
  const trust = ['-CAfile', roots, '-untrusted', between, '-no-CApath', '-no-CAstore']
  return ran(openssl, ['verify', '-x509_strict', '-crl_check', ...more, '-CRLfile', lists, ...trust, leaf]).said
}

/** What the responder says of it: OpenSSL checks the signature, the nonce and who may sign. */
const asked = (openssl: string, url: string, files: Files, cert: readonly string[], ...more: string[]): string => {
  const trust = ['-CAfile', files.roots, '-verify_other', files.between, '-no-CApath', '-no-CAstore']
  return ran(openssl, ['ocsp', ...more, '-url', `${url}/ocsp`, '-issuer', files.issuer, ...cert, ...trust]).said
}
const statusOf = (openssl: string, url: string, files: Files, ...more: string[]): string =>
  asked(openssl, url, files, ['-cert', files.leaf], ...more)

const fetched = async (
  url: string,
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Buffer }> => {
  const response = await fetch(url)
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}

/** As the plane names it. */
const issuerOf = (openssl: string, { issuer }: Files): string => {
  const { said } = ran(openssl, ['x509', '-noout', '-ext', 'subjectKeyIdentifier', '-in', issuer])
  return (/([0-9A-F]{2}(:[0-9A-F]{2}){19})/.exec(said)?.[1] ?? '').replaceAll(':', '').toLowerCase()
}

const serialOf = (node: RawNode): string => new X509Certificate(node.identity().chainPem).serialNumber

const revoke = async (plane: Plane, id: string, code: object = {}): Promise<number> => {
  const { status, body } = await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen', ...code })
  assert.equal(status, 200, JSON.stringify(body))
  return performance.now()
}

const numberIn = (openssl: string, list: string): number =>
  Number(/X509v3 CRL Number:\s+(\w+)/.exec(ran(openssl, ['crl', '-noout', '-text', '-in', list]).said)?.[1])

describe('a plane with its issuing key in a file', () => {
  // The place is of no interest here but for the delta: without one named in the full list OpenSSL looks for none.
  const plane = sharedPlane({ args: ['--status-url', 'http://status.example.test'] })
  const listsOf = (t: TestContext, files: Files) => {
    const folder = tempFolder(t)
    const name = issuerOf('openssl', files)
    return async (kind: '' | '-delta', as: string): Promise<string> => {
      const { status, headers, body } = await fetched(`${plane().statusUrl}/crl/${name}${kind}.crl`)
      assert.equal(status, 200, body.toString())
      assert.equal(headers.get('content-type'), 'application/pkix-crl')
      const file = path.join(folder, as)
      fs.writeFileSync(file, toPem('X509 CRL', body))
      return file
    }
  }

  test('OpenSSL verifies with our full list, and with an older one and its delta: good before a revocation, revoked after', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const [good, bad] = [await activeNode(plane(), 'crl-good'), await activeNode(plane(), 'crl-bad')]
    const folder = tempFolder(t)
    const [ofGood, ofBad] = [filesOf(folder, good), filesOf(folder, bad)]
    const list = listsOf(t, ofGood)
    const before = await list('', 'before.pem')
    for (const files of [ofGood, ofBad]) assert.match(verified(openssl, files, before), /: OK\n$/)

    const revokedAtMs = await revoke(plane(), 'crl-bad')
    const [full, delta] = [await list('', 'full.pem'), await list('-delta', 'delta.pem')]
    const tookMs = performance.now() - revokedAtMs
    assert.match(verified(openssl, ofGood, full), /: OK\n$/)
    assert.match(verified(openssl, ofBad, full), /certificate revoked/)
    assert.ok(numberIn(openssl, full) > numberIn(openssl, before))
    t.diagnostic(`from the answer to the revocation to both lists with it fetched: ${tookMs.toFixed(1)} ms`)

    const both = path.join(folder, 'both.pem')
    fs.writeFileSync(both, fs.readFileSync(before, 'utf8') + fs.readFileSync(delta, 'utf8'))
    assert.match(verified(openssl, ofBad, before), /: OK\n$/, 'the older list alone cannot know')
    assert.match(verified(openssl, ofBad, both, '-extended_crl', '-use_deltas'), /certificate revoked/)
    assert.match(verified(openssl, ofGood, both, '-extended_crl', '-use_deltas'), /: OK\n$/)
  })

  test('OpenSSL asks by OCSP: good, revoked right after the answer to the revocation, unknown where we never issued it', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const node = await activeNode(plane(), 'ocsp-node')
    const files = filesOf(tempFolder(t), node)
    const url = plane().statusUrl
    for (const more of [[], ['-sha256'], ['-no_nonce']]) {
      const said = statusOf(openssl, url, files, ...more)
      assert.match(said, /Response verify OK/)
      assert.match(said, /leaf\.pem: good/)
    }
    const revokedAtMs = await revoke(plane(), 'ocsp-node')
    const said = statusOf(openssl, url, files)
    const tookMs = performance.now() - revokedAtMs
    assert.match(said, /Response verify OK/)
    assert.match(said, /leaf\.pem: revoked/)
    assert.match(
      statusOf(openssl, url, files, '-no_nonce'),
      /leaf\.pem: revoked/,
      'what was said before is not repeated',
    )
    t.diagnostic(
      `from the answer to the revocation to an OCSP answer with it, openssl's start included: ${tookMs.toFixed(1)} ms`,
    )
    assert.match(asked(openssl, url, files, ['-serial', '0x1234567890']), /0x1234567890: unknown/)
    const status = (await plane().muster('ca', 'status', serialOf(node))).stdout
    assert.match(status, /status +revoked since .*\nof +ocsp-node, epoch 1/)
  })

  test('verifiers learn of a decommissioned node that it has ceased to operate', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const node = await activeNode(plane(), 'ended-node')
    const files = filesOf(tempFolder(t), node)
    await plane().api('POST', '/v1/nodes/ended-node/decommission', { force: true })
    assert.match(statusOf(openssl, plane().statusUrl, files), /Reason: cessationOfOperation/)
  })

  test('OpenSSL reads the reason that an operator named for a revocation, from our list and from OCSP', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const names = {
      'key-compromise': ['keyCompromise', 'Key Compromise'],
      superseded: ['superseded', 'Superseded'],
      'cessation-of-operation': ['cessationOfOperation', 'Cessation Of Operation'],
    }
    const listed: [serial: string, inList: string][] = []
    let files: Files | null = null
    for (const [code, [byOcsp = '', inList = '']] of Object.entries(names)) {
      const node = await activeNode(plane(), `why-${code}`)
      files = filesOf(tempFolder(t), node)
      // Of an identity that was quarantined first, the denial is there and has no reason yet.
      if (code === 'superseded') await plane().api('POST', `/v1/nodes/${node.id()}/quarantine`, { reason: 'odd' })
      if (code === 'superseded')
        assert.match(statusOf(openssl, plane().statusUrl, files), /leaf\.pem: revoked\n(?!.*Reason)/)
      await revoke(plane(), node.id(), { reason_code: code })
      assert.match(statusOf(openssl, plane().statusUrl, files), new RegExp(`Reason: ${byOcsp}\\n`))
      listed.push([serialOf(node), inList])
    }
    if (files === null) throw new Error('no node was revoked')
    const list = await listsOf(t, files)('', 'reasons.pem')
    const text = ran(openssl, ['crl', '-noout', '-text', '-in', list]).said
    for (const [serial, inList] of listed)
      assert.match(text, new RegExp(`Serial Number: ${serial}[^]{0,200}Reason Code: *\\n *${inList}`), inList)
    const unknown = await plane().api('POST', '/v1/nodes/why-superseded/revoke', {
      reason: 'x',
      reason_code: 'ca-compromise',
    })
    assert.equal(unknown.status, 400, 'that reason is for authorities')
  })

  test('what a leaf says of where to ask is understood by OpenSSL', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const { leaf } = filesOf(tempFolder(t), await activeNode(plane(), 'places'))
    assert.equal(ran(openssl, ['x509', '-noout', '-ocsp_uri', '-in', leaf]).said, 'http://status.example.test/ocsp\n')
    const text = ran(openssl, ['x509', '-noout', '-text', '-in', leaf]).said
    assert.match(text, /CRL Distribution Points:[^]*URI:http:\/\/status\.example\.test\/crl\/[0-9a-f]{40}\.crl/)
  })

  test('the listener answers what it is for, and nothing else', async (t) => {
    const url = plane().statusUrl
    const call = async (at: string, init: RequestInit = {}) => fetch(`${url}${at}`, init)
    const ocsp = { method: 'POST', headers: { 'content-type': 'application/ocsp-request' } }
    assert.equal((await call('/')).status, 404)
    assert.equal((await call('/v1/ca')).status, 404)
    assert.equal((await call('/crl/00aa.crl')).status, 404)
    assert.equal((await call('/crl/../ocsp')).status, 405)
    assert.equal((await call('/ocsp')).status, 405)
    assert.equal((await call('/ocsp', { method: 'POST', body: 'x' })).status, 415)
    assert.equal((await call('/ocsp', { ...ocsp, body: new Uint8Array(5000) })).status, 413)
    const malformed = await call('/ocsp', { ...ocsp, body: new Uint8Array(10) })
    assert.equal(malformed.headers.get('content-type'), 'application/ocsp-response')
    assert.deepEqual(Buffer.from(await malformed.arrayBuffer()).toString('hex'), '30030a0101')
    assert.equal(Buffer.from(await (await call('/ocsp/%%')).arrayBuffer()).toString('hex'), '30030a0101')
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const files = filesOf(tempFolder(t), await activeNode(plane(), 'in-a-path'))
    const request = path.join(tempFolder(t), 'request.der')
    ran(openssl, ['ocsp', '-no_nonce', '-issuer', files.issuer, '-cert', files.leaf, '-reqout', request])
    const inPath = await call(`/ocsp/${encodeURIComponent(fs.readFileSync(request).toString('base64'))}`)
    assert.equal(inPath.status, 200)
    assert.match(inPath.headers.get('cache-control') ?? '', /max-age=10/)
    const response = path.join(tempFolder(t), 'response.der')
    fs.writeFileSync(response, Buffer.from(await inPath.arrayBuffer()))
    assert.match(ran(openssl, ['ocsp', '-respin', response, '-resp_text', '-noverify']).said, /Cert Status: good/)
    const { stdout } = await plane().muster('ca', 'crl')
    assert.match(stdout, /^-----BEGIN X509 CRL-----/)
  })

  test('after muster ca rotate OpenSSL verifies what the CA before has signed with its list, good and revoked since', async (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const [good, bad] = [await activeNode(plane(), 'kept-good'), await activeNode(plane(), 'kept-bad')]
    const folder = tempFolder(t)
    const [ofGood, ofBad] = [filesOf(folder, good), filesOf(folder, bad)]
    const list = listsOf(t, ofGood)
    const rotated = await plane().muster('ca', 'rotate')
    assert.equal(rotated.code, 0, rotated.stderr)
    await revoke(plane(), 'kept-bad')
    const full = await list('', 'full.pem')
    assert.match(verified(openssl, ofGood, full), /: OK\n$/)
    assert.match(verified(openssl, ofBad, full), /certificate revoked/)
    const later = filesOf(folder, await activeNode(plane(), 'kept-later'))
    assert.notEqual(issuerOf(openssl, later), issuerOf(openssl, ofGood))
    assert.match(verified(openssl, later, await listsOf(t, later)('', 'later.pem')), /: OK\n$/)

    const issuer = issuerOf(openssl, ofGood)
    const withdrawn = await plane().api('POST', '/v1/ca/withdraw', { issuer, reason: 'it was copied before' })
    assert.equal(withdrawn.status, 200, JSON.stringify(withdrawn.body))
    assert.equal((await fetched(`${plane().statusUrl}/crl/${issuer}.crl`)).status, 404)
    assert.match(statusOf(openssl, plane().statusUrl, ofGood), /leaf\.pem: revoked[^]*Reason: cACompromise/)
  })
})

test('certificates of an issuer in memory can be asked about after a restart, which has forgotten its key', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const plane = await startPlane(t, { args: ['--issuer-key', 'memory'] })
  const [good, bad] = [await activeNode(plane, 'good'), await activeNode(plane, 'bad')]
  const folder = tempFolder(t)
  const [ofGood, ofBad] = [filesOf(folder, good), filesOf(folder, bad)]
  await plane.stop()
  const again = await plane.restart()
  await revoke(again, 'bad')
  assert.match(
    statusOf(openssl, again.statusUrl, ofGood),
    /Response verify OK[^]*leaf\.pem: good|leaf\.pem: good[^]*Response verify OK/,
  )
  assert.match(statusOf(openssl, again.statusUrl, ofBad), /leaf\.pem: revoked/)
  const issuer = issuerOf(openssl, ofGood)
  const withdrawn = await again.api('POST', '/v1/ca/withdraw', { issuer, reason: 'its memory was read' })
  assert.equal(withdrawn.status, 200, JSON.stringify(withdrawn.body))
  assert.match(statusOf(openssl, again.statusUrl, ofGood), /leaf\.pem: revoked[^]*Reason: cACompromise/)
  const crl = await again.muster('ca', 'crl')
  assert.notEqual(crl.code, 0)
  assert.match(crl.stderr, /OCSP/)
})

test('two replicas: a revocation on one is in the list and the answers of the other, and their lists have the same numbers', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null || withPeer(t, 'postgres') === null) return
  const { env } = await postgresDatabase(t, 'migrated')
  const [one, other] = await startReplicaPlanes(t, 2, env)
  assert.ok(one !== undefined && other !== undefined)
  const node = await activeNode(one, 'shared')
  const files = filesOf(tempFolder(t), node)
  const lists = async (): Promise<readonly { number: number; entries: number }[]> =>
    Promise.all([one, other].map(async (plane) => (await plane.api('GET', '/v1/ca/crl')).body))
  const before = await lists()
  assert.equal(before[0]?.number, before[1]?.number)
  await revoke(one, 'shared')
  assert.match(statusOf(openssl, other.statusUrl, files), /leaf\.pem: revoked/)
  const after = await lists()
  assert.equal(after[0]?.number, after[1]?.number)
  assert.deepEqual(
    after.map(({ entries }) => entries),
    [1, 1],
  )
  assert.ok((after[0]?.number ?? 0) > (before[0]?.number ?? 0))
})
