// Seed 002, compliance tests 1 to 4 and 10: what a token lets in, and what leaves it as it was. T18: the same again.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { eventually } from '../process/eventually.ts'
import { certificateBytes, startFaultProxy } from '../process/fault-proxy.ts'
import { nodeCall } from '../process/node-call.ts'
import { operatorCall } from '../process/operator-call.ts'
import {
  journalOf,
  makeToken,
  membershipOf,
  nodeOf,
  refusal,
  refusalIn,
  succeeded,
  tokenOf,
  untilMembership,
} from './ask-plane.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hostileCsrs } from '../vectors/pki-hostile-csrs.ts'

const shared = sharedPlane()

test('002-1: a valid token enrolls a machine, is used up by it, and the machine goes to work', async (t) => {
  const plane = shared()
  const { id, join } = await makeToken(plane, { node: 'gpu-001' })
  assert.equal((await tokenOf(plane, id)).state, 'unused')
  const agent = startAgent(t, { join })
  await untilMembership(plane, 'gpu-001', 'active', { withinMs: 20_000 })
  const { state, used_by: usedBy } = await tokenOf(plane, id)
  assert.deepEqual([state, usedBy], ['used', 'gpu-001'])
  const { epoch, facts } = await nodeOf(plane, 'gpu-001')
  assert.equal(epoch, 1)
  assert.ok(facts.cpu_cores > 0 && facts.memory_bytes > 0)
  await agent.stop()
  assert.doesNotMatch(agent.stderr() + agent.stdout(), /enroll_/)
})

test('002-2: an expired token is rejected, and its node stays as it was', async () => {
  const plane = shared()
  const { id, secret } = await makeToken(plane, { node: 'late-1', expires_ms: 1000 })
  await eventually('the token to expire', async () => (await tokenOf(plane, id)).state === 'expired')
  const reply = await rawNode(await plane.target()).enrollByToken(secret)
  assert.deepEqual(refusal(reply), [403, 'TOKEN_EXPIRED'])
  assert.equal((await tokenOf(plane, id)).used_at, null)
  assert.equal(await membershipOf(plane, 'late-1'), 'registered')
  const { actor } = await refusalIn(plane, 'TOKEN_EXPIRED', { node: 'late-1', token: id })
  assert.equal(actor, `token:${id}`)
})

test('002-3: a reused token is rejected, and the journal says so', async () => {
  const plane = shared()
  const { id, secret } = await makeToken(plane, { node: 'reuse-1' })
  const [first, second] = [rawNode(await plane.target()), rawNode(await plane.target())]
  succeeded(await first.enrollByToken(secret))
  assert.deepEqual(refusal(await second.enrollByToken(secret)), [403, 'TOKEN_USED'])
  await refusalIn(plane, 'TOKEN_USED', { node: 'reuse-1', token: id })
  assert.equal(succeeded(await first.confirm()).membership, 'active')
  // Used and active by now: still not for another key.
  assert.deepEqual(refusal(await second.enrollByToken(secret)), [403, 'TOKEN_USED'])
  assert.equal((await journalOf(plane, { node: 'reuse-1', type: 'host.enrolled' })).length, 1)
})

test('002-4: an invalid CSR is rejected without consuming the token, which then works', async () => {
  const plane = shared()
  const { id, secret } = await makeToken(plane, { node: 'csr-1' })
  const node = rawNode(await plane.target())
  const signedByAnother = hostileCsrs().find(({ wrong }) => /signature/i.test(wrong))
  assert.ok(signedByAnother, 'a vector with a wrong signature')
  for (const csr of ['not a request', node.csr.replace(/[A-Za-z0-9+/]{8}\n/, '\n'), signedByAnother.pem]) {
    assert.deepEqual(refusal(await node.enrollByToken(secret, { csr })), [400, 'CSR_INVALID'])
  }
  await refusalIn(plane, 'CSR_INVALID', { node: 'csr-1', token: id })
  assert.equal((await tokenOf(plane, id)).state, 'unused')
  assert.equal(succeeded(await node.enrollByToken(secret)).node_id, 'csr-1')
  assert.equal((await tokenOf(plane, id)).state, 'used')
})

test('002-4: nothing that is wrong with a request consumes its token', async () => {
  const plane = shared()
  succeeded(
    await plane.api('POST', '/v1/profiles', {
      name: 'ed25519-only',
      from: 'gpu-cloud',
      set: { 'certificate.keyTypes': ['ed25519'] },
    }),
  )
  const { id, secret } = await makeToken(plane, { node: 'table-1', profile: 'ed25519-only' })
  const csr = makeCsr(generateKey('ed25519'), 'node')
  const good = { method: 'token', enrollment_token: secret, csr }
  const hardware = { macs: ['52:54:00:00:00:01'], bmc_serial: null }
  const wrong: readonly [what: string, body: object, status: number, code: string, field?: string][] = [
    ['a character too many', { ...good, enrollment_token: `${secret}x` }, 400, 'TOKEN_MALFORMED', 'enrollment_token'],
    [
      'no prefix',
      { ...good, enrollment_token: secret.replace('enroll_', '') },
      400,
      'TOKEN_MALFORMED',
      'enrollment_token',
    ],
    ['no token', { method: 'token', csr }, 400, 'TOKEN_MALFORMED', 'enrollment_token'],
    ['another secret', { ...good, enrollment_token: `enroll_${'A'.repeat(43)}` }, 403, 'TOKEN_INVALID'],
    ['an empty request', { ...good, csr: ' ' }, 400, 'CSR_INVALID', 'csr'],
    ['a key type not allowed', { ...good, csr: makeCsr(generateKey('p256'), 'node') }, 400, 'CSR_INVALID', 'csr'],
    ['no request', { method: 'token', enrollment_token: secret }, 400, 'REQUEST_INVALID', 'csr'],
    ['a field nobody knows', { ...good, admin: true }, 400, 'REQUEST_INVALID', 'admin'],
    ['a name that is none', { ...good, node_id: '../etc' }, 400, 'REQUEST_INVALID', 'node_id'],
    ['hardware nobody knows', { ...good, method: 'hardware', hardware_identity: hardware }, 403, 'NODE_NOT_ENROLLED'],
    ['too much', { ...good, padding: 'x'.repeat(70_000) }, 413, 'TOO_LARGE'],
  ]
  for (const [what, body, status, code, field] of wrong) {
    const reply = await nodeCall(await plane.target(), null, 'POST', '/v1/enroll', body)
    assert.deepEqual([...refusal(reply), reply.body.field], [status, code, field], what)
    assert.equal((await tokenOf(plane, id)).state, 'unused', what)
  }
  assert.equal(await membershipOf(plane, 'table-1'), 'registered')
  succeeded(await nodeCall(await plane.target(), null, 'POST', '/v1/enroll', good))
})

test('002-10: token creation requires an authenticated operator', async (t) => {
  const plane = shared()
  const made = async (): Promise<number> => (await journalOf(plane, { type: 'enrollment_token.created' })).length
  const keyOf = async (name: string, role: string): Promise<{ id: string; secret: string }> => {
    const { key, secret } = succeeded(await plane.api('POST', '/v1/keys', { name, role }))
    return { id: key.id, secret }
  }
  const [viewer, former, operator] = [
    await keyOf('vera', 'viewer'),
    await keyOf('fred', 'operator'),
    await keyOf('olga', 'operator'),
  ]
  succeeded(await plane.api('POST', `/v1/keys/${former.id}/revoke`, {}))
  const before = await made()
  const callers: readonly [who: string, key: string | null, status: number, code: string][] = [
    ['without a key', null, 401, 'OPERATOR_KEY_REQUIRED'],
    ['with something that is no key', 'root', 401, 'OPERATOR_KEY_INVALID'],
    ['with a key nobody made', `muster_key_${'A'.repeat(43)}`, 401, 'OPERATOR_KEY_INVALID'],
    ['with a revoked key', former.secret, 401, 'OPERATOR_KEY_INVALID'],
    ['as a viewer', viewer.secret, 403, 'ROLE_FORBIDDEN'],
  ]
  for (const [who, key, status, code] of callers) {
    const reply = await operatorCall(plane.socket, key, 'POST', '/v1/tokens', { node: 'nobody-1' })
    assert.deepEqual(refusal(reply), [status, code], who)
  }
  const keyFile = path.join(tempFolder(t), 'viewer.key')
  fs.writeFileSync(keyFile, viewer.secret, { mode: 0o600 })
  const cli = await plane.muster('--key-file', keyFile, 'token', 'create', '--node', 'nobody-1')
  assert.deepEqual([cli.code, cli.stdout], [4, ''], cli.stderr)
  assert.match(cli.stderr, /ROLE_FORBIDDEN/)
  // The node listener has no such address, for any caller.
  assert.deepEqual(refusal(await nodeCall(await plane.target(), null, 'POST', '/v1/tokens', {})), [404, 'NOT_FOUND'])

  assert.equal(await made(), before)
  assert.equal((await plane.api('GET', '/v1/nodes/nobody-1')).status, 404)
  const created = await operatorCall(plane.socket, operator.secret, 'POST', '/v1/tokens', { node: 'somebody-1' })
  assert.equal(succeeded(created).token.created_by, 'operator:olga')
})

test('T18: repeating an enrollment with the same token and key returns the byte-identical certificate, signed once', async () => {
  const plane = shared()
  const { secret } = await makeToken(plane, { node: 'again-1' })
  const node = rawNode(await plane.target())
  const crowd = await Promise.all(Array.from({ length: 8 }, () => node.enrollByToken(secret)))
  succeeded(await node.confirm())
  const chains = [...crowd, await node.enrollByToken(secret)].map((reply) => succeeded(reply).certificate_chain)
  assert.equal(new Set(chains).size, 1)
  const enrolled = await journalOf(plane, { node: 'again-1', type: 'host.enrolled' })
  const { fingerprint256 } = new X509Certificate(chains[0])
  assert.deepEqual(
    enrolled.map(({ body }) => body.mtls_cert_fingerprint),
    [`SHA256:${fingerprint256.replaceAll(':', '').toLowerCase()}`],
  )
})

test('T18: an agent whose reply was lost, and which was killed then, gets the same certificate at its restart', async (t) => {
  const plane = shared()
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: plane.nodePort })
  const join = (await makeToken(plane, { node: 'again-2' })).join.replace(`:${plane.nodePort}`, `:${proxy.port}`)
  proxy.dropReplies(Infinity, certificateBytes)
  const agent = startAgent(t, { join })
  await eventually('a second reply to be lost', () => proxy.repliesDropped() >= 2, { withinMs: 20_000 })
  await agent.kill9()
  const [{ serial }] = (await nodeOf(plane, 'again-2')).certificates
  assert.equal(await membershipOf(plane, 'again-2'), 'enrolled')

  proxy.pass()
  agent.restart({ join })
  await untilMembership(plane, 'again-2', 'active', { withinMs: 20_000 })
  const { certificates, epoch } = await nodeOf(plane, 'again-2')
  assert.deepEqual([certificates.length, certificates[0].serial, epoch], [1, serial, 1])
  assert.equal((await journalOf(plane, { node: 'again-2', type: 'host.enrolled' })).length, 1)
})
