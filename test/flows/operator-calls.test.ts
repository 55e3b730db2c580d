// What operators do, against a real store and a real authority, over the Unix socket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { readOf, entry } from '#domain/core/change.ts'
import { slotOf } from '#domain/core/certificate.ts'
import type { Membership } from '#domain/core/node.ts'
import { operatorRoutes, type OperatorRouteParts, type OperatorRouteSources } from '#plane/boot/operator-routes.ts'
import { tokenSecretShape } from '#domain/core/token.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { someCertificate } from '../store/harness.ts'
import { hour, operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'
import type { Core } from '#plane/core/core.ts'

const routes = operatorRoutes({} as Core, {} as OperatorRouteParts, {} as OperatorRouteSources)

/** Every answer is held against the schema its route declares. */
const ok = async (
  plane: OperatorSetup,
  role: Parameters<OperatorSetup['call']>[0],
  method: string,
  path: string,
  body?: object,
) => {
  const reply = await plane.call(role, method, path, body)
  assert.ok(reply.status === 200 || reply.status === 201, `${method} ${path}: ${JSON.stringify(reply.body)}`)
  const shape = (route: { path: string }) => new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`)
  const route = routes.find((one) => one.method === method && shape(one).test(path.replace(/\?.*/, '')))
  if (route?.answer !== undefined)
    assert.ok(Check(route.answer, reply.body), `${method} ${path}: ${JSON.stringify(reply.body)}`)
  return reply.body
}

const refused = async (
  plane: OperatorSetup,
  role: Parameters<OperatorSetup['call']>[0],
  method: string,
  path: string,
  body?: object,
) => (await plane.call(role, method, path, body)).body.code as string

/** As an enrollment would leave it: with a certificate in use and a channel open. */
const makeActive = async ({ store, sessions }: OperatorSetup, id: string): Promise<void> => {
  const node = await store.get('node', id)
  assert.ok(node !== null)
  const slots = { current: slotOf(someCertificate('a1', { spki: `key-of-${id}` })), pending: null, retired: null }
  const membership: Membership = { kind: 'active', sinceMs: startMs, slots }
  await store.commit({
    reads: [readOf('node', id, node)],
    writes: [{ put: 'node', value: { ...node.value, membership, epoch: 1 } }],
    entries: [entry(operator, startMs, 'node.confirmed', { node: id, epoch: 1 })],
  })
  sessions.set(id, [{ number: 7, sinceMs: startMs, serial: 'a1' }])
}

test('a node is registered once; the second time says what is there', async (t) => {
  const plane = await setUpOperatorServer(t)
  const node = await ok(plane, 'operator', 'POST', '/v1/nodes', {
    id: 'gpu-001',
    macs: ['AA-BB-CC-DD-EE-02'],
    bmc_serial: 'SN1',
  })
  assert.deepEqual(node.hardware, { macs: ['aa:bb:cc:dd:ee:02'], bmc_serial: 'SN1' })
  assert.equal(node.registered_by, 'operator:the-operator')
  assert.equal(
    await refused(plane, 'operator', 'POST', '/v1/nodes', {
      id: 'gpu-001',
      macs: ['AA-BB-CC-DD-EE-02'],
      bmc_serial: 'SN1',
    }),
    'NODE_ALREADY_ENROLLED',
  )
  assert.equal(
    await refused(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-002', bmc_serial: 'SN1' }),
    'HARDWARE_IDENTITY_CONFLICT',
  )
  assert.equal(
    await refused(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-003', profile: 'none' }),
    'PROFILE_NOT_FOUND',
  )
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes', { id: 'GPU-3' }), 'REQUEST_INVALID')
})

test('of fifty callers who register one name at once, one does', async (t) => {
  const plane = await setUpOperatorServer(t)
  const replies = await Promise.all(
    Array.from({ length: 50 }, () => plane.call('operator', 'POST', '/v1/nodes', { id: 'gpu-001' })),
  )
  assert.equal(replies.filter(({ status }) => status === 201).length, 1)
  assert.ok(replies.every(({ status, body }) => status === 201 || body.code === 'NODE_ALREADY_ENROLLED'))
})

test('nodes are listed page by page in the order of their ids', async (t) => {
  const plane = await setUpOperatorServer(t)
  for (const id of ['c', 'a', 'b']) await ok(plane, 'operator', 'POST', '/v1/nodes', { id })
  const first = await ok(plane, 'viewer', 'GET', '/v1/nodes?limit=2')
  assert.deepEqual(
    first.nodes.map((node: { id: string }) => node.id),
    ['a', 'b'],
  )
  assert.equal(first.next, 'b')
  const second = await ok(plane, 'viewer', 'GET', '/v1/nodes?limit=2&after=b')
  assert.deepEqual(
    second.nodes.map((node: { id: string }) => node.id),
    ['c'],
  )
  assert.equal(second.next, null)
  assert.deepEqual((await ok(plane, 'viewer', 'GET', '/v1/nodes?membership=active')).nodes, [])
  assert.equal(await refused(plane, 'viewer', 'GET', '/v1/nodes?membership=gone'), 'REQUEST_INVALID')
  assert.equal(await refused(plane, 'viewer', 'GET', '/v1/nodes?limit=1001'), 'REQUEST_INVALID')
  assert.equal(await refused(plane, 'viewer', 'GET', '/v1/nodes?colour=red'), 'REQUEST_INVALID')
})

test('compliance 10: making a token takes an authenticated operator', async (t) => {
  const plane = await setUpOperatorServer(t)
  assert.equal(await refused(plane, null, 'POST', '/v1/tokens', { node: 'gpu-001' }), 'OPERATOR_KEY_REQUIRED')
  assert.equal(await refused(plane, 'viewer', 'POST', '/v1/tokens', { node: 'gpu-001' }), 'ROLE_FORBIDDEN')
  assert.deepEqual(await plane.store.tokens({ node: null, limit: 10 }), [])
  assert.equal(await plane.store.get('node', 'gpu-001'), null)
})

test('a token registers its node, is shown once, and its join string carries all a machine needs', async (t) => {
  const plane = await setUpOperatorServer(t)
  const made = await ok(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-001' })
  assert.equal(made.registered, true)
  assert.match(made.secret, tokenSecretShape)
  assert.deepEqual(parseJoinString(made.join), {
    marked: true,
    url: 'https://plane.example:8443',
    domain: 'test.example',
    rootFingerprint: plane.authority.rootFingerprint(),
    secret: made.secret,
  })
  const listed = await ok(plane, 'viewer', 'GET', '/v1/tokens')
  assert.deepEqual(listed.tokens, [made.token])
  assert.equal(JSON.stringify(await plane.store.tokens({ node: null, limit: 10 })).includes(made.secret), false)
})

test('compliance 7: the entries of a token and of a revocation have all their fields', async (t) => {
  const plane = await setUpOperatorServer(t)
  const { token } = await ok(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-001' })
  const [created] = await plane.journal('enrollment_token.created')
  const { token_id, created_by, expires_at, timestamp } = created!.body
  assert.deepEqual(
    { token_id, created_by, expires_at, timestamp },
    {
      token_id: token.id,
      created_by: 'operator:the-operator',
      expires_at: token.expires_at,
      timestamp: token.created_at,
    },
  )
  assert.equal(created!.actor, 'operator:the-operator')
  assert.equal(created!.source, 'local')
  assert.equal(created!.node, 'gpu-001')
  assert.match(String(created!.correlation), /^call-\d+$/)

  const receipt = await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/revoke', { reason: 'compromised' })
  const [revoked] = await plane.journal('host.revoked')
  const { host_id, revoked_by, reason } = revoked!.body
  assert.deepEqual(
    { host_id, revoked_by, reason },
    { host_id: 'gpu-001', revoked_by: 'operator:the-operator', reason: 'compromised' },
  )
  assert.equal(revoked!.body['timestamp'], receipt.decided_at)
})

test('a token can be withdrawn once, and expires by the clock', async (t) => {
  const plane = await setUpOperatorServer(t)
  const one = await ok(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-001' })
  const two = await ok(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-002', expires_ms: hour })
  assert.equal((await ok(plane, 'operator', 'POST', `/v1/tokens/${one.token.id}/revoke`)).state, 'revoked')
  assert.equal(await refused(plane, 'operator', 'POST', `/v1/tokens/${one.token.id}/revoke`), 'TOKEN_INVALID')
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/tokens/unknown/revoke'), 'TOKEN_NOT_FOUND')
  assert.equal(
    await refused(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-003', expires_ms: 25 * hour }),
    'SETTING_INVALID',
  )
  plane.clock.advance(hour)
  const { tokens } = await ok(plane, 'viewer', 'GET', '/v1/tokens?node=gpu-002')
  assert.deepEqual(
    tokens.map(({ id, state }: { id: string; state: string }) => [id, state]),
    [[two.token.id, 'expired']],
  )
})

test('a revocation answers with the channels it cut and the certificates it denied', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  await makeActive(plane, 'gpu-001')
  const shown = await ok(plane, 'viewer', 'GET', '/v1/nodes/gpu-001')
  assert.deepEqual(shown.sessions, [{ number: 7, since: '2027-01-15T08:00:00.000Z', serial: 'a1' }])
  assert.ok(shown.why.length > 0)
  const receipt = await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/revoke', { reason: 'compromised' })
  assert.equal(receipt.channels_cut, 1)
  assert.deepEqual(receipt.certificates, ['ca/a1'])
  assert.equal(receipt.epoch, 1)
  assert.notEqual(await plane.store.get('key-ban', 'key-of-gpu-001'), null)
  const { entries } = await ok(plane, 'viewer', 'GET', '/v1/journal?type=host.revoked')
  assert.equal(entries[0].cursor, receipt.journal)
  assert.equal(
    await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/revoke', { reason: 'again' }),
    'NODE_REVOKED',
  )
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-001' }), 'NODE_REVOKED')
})

test('a quarantine cuts the channels and is ended by a release', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  await makeActive(plane, 'gpu-001')
  assert.equal((await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd' })).channels_cut, 1)
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/tokens', { node: 'gpu-001' }), 'NODE_QUARANTINED')
  assert.equal((await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/release')).membership, 'inactive')
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/release'), 'NODE_STATE_CONFLICT')
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/approve'), 'NODE_STATE_CONFLICT')
})

test('P3: an idle node is decommissioned with its channel open: no work is lost', async (t) => {
  const plane = await setUpOperatorServer(t)
  for (const id of ['gpu-001', 'gpu-002']) {
    await ok(plane, 'operator', 'POST', '/v1/nodes', { id })
    await makeActive(plane, id)
  }
  const decommission = (id: string, body: object) => ['POST', `/v1/nodes/${id}/decommission`, body] as const
  assert.equal(await refused(plane, 'operator', ...decommission('gpu-001', {})), 'ROLE_FORBIDDEN')
  assert.equal((await ok(plane, 'platform-admin', ...decommission('gpu-001', {}))).channels_cut, 1)
  assert.equal((await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-002/drain')).scheduling.state, 'drained')
  await ok(plane, 'platform-admin', ...decommission('gpu-002', {}))
  const counts = await plane.store.countNodes()
  assert.equal(counts.revoked, 2)
})

test('a drain is taken back by undrain', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/drain')
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/drain'), 'NODE_STATE_CONFLICT')
  await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/undrain')
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/undrain'), 'NODE_STATE_CONFLICT')
})

test('profiles and the domain are changed by name, and only to what works', async (t) => {
  const plane = await setUpOperatorServer(t)
  const made = await ok(plane, 'platform-admin', 'POST', '/v1/profiles', {
    name: 'short',
    set: { 'certificate.lifetimeMs': hour },
  })
  assert.equal(made.certificate.lifetimeMs, hour)
  assert.equal(await refused(plane, 'platform-admin', 'POST', '/v1/profiles', { name: 'short' }), 'PROFILE_EXISTS')
  assert.equal(
    await refused(plane, 'platform-admin', 'POST', '/v1/profiles', { name: 'x', from: 'y' }),
    'PROFILE_NOT_FOUND',
  )
  const changed = await ok(plane, 'platform-admin', 'PATCH', '/v1/profiles/short', { set: { keyStorage: 'memory' } })
  assert.equal(changed.keyStorage, 'memory')
  assert.deepEqual(await ok(plane, 'viewer', 'GET', '/v1/profiles/short'), changed)
  assert.equal((await ok(plane, 'viewer', 'GET', '/v1/profiles')).profiles.length, 5)
  assert.equal(
    await refused(plane, 'platform-admin', 'PATCH', '/v1/profiles/short', { set: { colour: 'red' } }),
    'PROFILE_INVALID',
  )
  const tooLong = { set: { 'certificate.lifetimeMs': 9 * 365 * 24 * hour } }
  assert.equal(await refused(plane, 'platform-admin', 'PATCH', '/v1/profiles/short', tooLong), 'PROFILE_INVALID')
  const domain = await ok(plane, 'platform-admin', 'PATCH', '/v1/domain', { set: { defaultProfile: 'short' } })
  assert.deepEqual(await ok(plane, 'viewer', 'GET', '/v1/domain'), domain)
  assert.equal((await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })).profile, 'short')
  assert.equal(
    await refused(plane, 'platform-admin', 'PATCH', '/v1/domain', { set: { name: 'other.example' } }),
    'SETTING_INVALID',
  )
})

test('a key that was made works, with its role, and shows no hash', async (t) => {
  const plane = await setUpOperatorServer(t)
  const made = await ok(plane, 'platform-admin', 'POST', '/v1/keys', { name: 'ada', role: 'viewer' })
  assert.match(made.secret, /^muster_key_[A-Za-z0-9_-]{43}$/)
  const { keys } = await ok(plane, 'viewer', 'GET', '/v1/keys')
  assert.equal(keys.length, 4)
  assert.equal(JSON.stringify(keys).includes('hash'), false)
  assert.equal(
    await refused(plane, 'platform-admin', 'POST', '/v1/keys', { name: 'ada', role: 'operator' }),
    'SETTING_INVALID',
  )
  assert.equal(await refused(plane, 'platform-admin', 'POST', '/v1/keys/unknown/revoke'), 'KEY_NOT_FOUND')
})

test('the journal is followed: a call that waits ends with the entry it waits for', async (t) => {
  const plane = await setUpOperatorServer(t)
  const { next } = await ok(plane, 'viewer', 'GET', '/v1/journal?last=1')
  const waiting = ok(plane, 'viewer', 'GET', `/v1/journal?after=${next}&wait_ms=30000&node=gpu-002`)
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-002' })
  const page = await waiting
  assert.deepEqual(
    page.entries.map(({ entry: { type, node } }: { entry: Record<string, string> }) => [type, node]),
    [['node.registered', 'gpu-002']],
  )
  assert.equal(page.next, page.entries[0].cursor)
})

test('a call that waits in vain ends empty, at the place where it began', async (t) => {
  const plane = await setUpOperatorServer(t)
  const { next } = await ok(plane, 'viewer', 'GET', '/v1/journal?last=1')
  const waitingBefore = plane.timers.waiting()
  const waiting = ok(plane, 'viewer', 'GET', `/v1/journal?after=${next}&wait_ms=20000`)
  while (plane.timers.waiting() === waitingBefore) await new Promise((resolve) => setImmediate(resolve))
  plane.timers.advance(20_000)
  assert.deepEqual(await waiting, { entries: [], next })
  assert.equal(await refused(plane, 'viewer', 'GET', '/v1/journal?after=nonsense'), 'REQUEST_INVALID')
  assert.equal(await refused(plane, 'viewer', 'GET', '/v1/journal?type=nonsense'), 'REQUEST_INVALID')
  const { body: misspelt } = await plane.call('viewer', 'GET', '/v1/journal?type=node.quarantind')
  assert.match(misspelt.detail, /^did you mean node\.quarantined\? there are entries of /)
})

test('the journal is verified on request, by several at once', async (t) => {
  const plane = await setUpOperatorServer(t)
  const verified = await Promise.all([1, 2, 3].map(() => ok(plane, 'viewer', 'POST', '/v1/journal/verify')))
  for (const { intact, entries } of verified) assert.ok(intact === true && entries > 0)
})

test('the authority shows itself and rotates', async (t) => {
  const plane = await setUpOperatorServer(t)
  const before = await ok(plane, 'viewer', 'GET', '/v1/ca')
  const after = await ok(plane, 'platform-admin', 'POST', '/v1/ca/rotate')
  assert.ok(after.authorities.length > before.authorities.length)
  const bundle = await ok(plane, 'viewer', 'GET', '/v1/ca/bundle')
  assert.equal(bundle.root_fingerprint, before.root_fingerprint)
  const { csr } = await ok(plane, 'platform-admin', 'POST', '/v1/ca/request')
  assert.match(csr, /^-----BEGIN CERTIFICATE REQUEST-----/)
  assert.equal(
    await refused(plane, 'platform-admin', 'POST', '/v1/ca/import', { certificate: 'x' }),
    'CA_REQUEST_INVALID',
  )
})

test('health needs no key, readiness says what is missing, metrics count', async (t) => {
  const plane = await setUpOperatorServer(t)
  assert.deepEqual(await ok(plane, null, 'GET', '/healthz'), { alive: true })
  assert.deepEqual(await ok(plane, null, 'GET', '/readyz'), { ready: true, reasons: [], warnings: [] })
  plane.unready.push('the plane is stopping')
  const reply = await plane.call(null, 'GET', '/readyz')
  assert.equal(reply.status, 503)
  assert.deepEqual(reply.body, { ready: false, reasons: ['the plane is stopping'], warnings: [] })

  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/revoke', { reason: 'x' })
  assert.equal(await refused(plane, 'operator', 'POST', '/v1/nodes/gpu-001/drain'), 'NODE_REVOKED')
  const text = String((await plane.call('viewer', 'GET', '/metrics')).body)
  assert.match(text, /^muster_nodes\{membership="revoked"\} 1$/m)
  assert.match(text, /^muster_revocations_total 1$/m)
  assert.match(text, /^muster_refusals_total\{code="NODE_REVOKED"\} 1$/m)
  assert.match(text, /^muster_issuer_not_after_seconds\{role="issuing"\} \d+/m)
  assert.match(text, /^muster_server_certificate_not_after_seconds \d+/m)
  assert.match(text, /^process_cpu_seconds_total /m)
})

test('a viewer who asks for verification gets the last result; an operator gets a new one', async (t) => {
  const plane = await setUpOperatorServer(t)
  const entries = async (role: 'viewer' | 'operator'): Promise<number> =>
    (await ok(plane, role, 'POST', '/v1/journal/verify', {})).entries
  const first = await entries('viewer')
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  assert.equal(await entries('viewer'), first)
  const second = await entries('operator')
  assert.ok(second > first)
  assert.equal(await entries('viewer'), second)
})

test('a value that fits its schema and breaks a rule is refused with the name of its field', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  const self = (await plane.call('platform-admin', 'GET', '/v1/peer-domains/self')).body
  const file = { path: 'etc/a', mode: 0o644, content: '' }
  const numbered = (count: number, name: string) => Array.from({ length: count }, (_, at) => `${name}-${at}`)
  const slotsNamed = (name: string) => numbered(40, name).map((one) => ({ name: one, state: 'approved' }))
  await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/machine', { slots: slotsNamed('a') })
  await ok(plane, 'operator', 'POST', '/v1/nodes/gpu-001/tags', { add: numbered(40, 't') })
  for (const [path, body, code, field] of [
    ['/v1/nodes', { id: 'gpu-002', macs: ['ff:ff:ff:ff:ff:ff'] }, 'REQUEST_INVALID', 'macs'],
    ['/v1/nodes', { id: 'gpu-002', bmc_serial: '00000000' }, 'REQUEST_INVALID', 'bmc_serial'],
    ['/v1/nodes/gpu-001/tags', { add: numbered(40, 'u') }, 'REQUEST_INVALID', 'add'],
    ['/v1/nodes/gpu-001/machine', { slots: slotsNamed('b') }, 'REQUEST_INVALID', 'slots'],
    ['/v1/tokens', { node: 'gpu-001', expires_ms: 48 * hour }, 'SETTING_INVALID', 'expires_ms'],
    ['/v1/keys', { name: 'the-viewer', role: 'viewer' }, 'SETTING_INVALID', 'name'],
    ['/v1/vclusters', { name: 'none' }, 'VCLUSTER_INVALID', 'name'],
    ['/v1/vclusters', { name: 'blue', overlay: { files: [file, file] } }, 'VCLUSTER_INVALID', 'overlay.files.1'],
    ['/v1/peer-domains', { ...self, statement_keys: ['A'.repeat(44)] }, 'REQUEST_INVALID', 'name'],
    ['/v1/ca/import', { certificate: 'no certificate' }, 'CA_REQUEST_INVALID', 'certificate'],
  ] as const) {
    const { body: said } = await plane.call('platform-admin', 'POST', path, body)
    assert.deepEqual([said.code, said.field, said.field_unknown], [code, field, undefined], `${path} ${said.detail}`)
  }
})
