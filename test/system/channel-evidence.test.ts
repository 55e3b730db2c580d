// A repaired machine in quarantine: its channel carries evidence, and nothing else until an operator releases it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { evidenceOf, reportOf } from '../fakes/agent-words.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json, Reply } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { channelOf, endOf } from './channel-setup.ts'

const plane = sharedPlane()
const record = async (id: string): Promise<Json> => (await plane().api('GET', `/v1/nodes/${id}`)).body
const act = (id: string, action: string, body: object = {}): Promise<Reply> =>
  plane().api('POST', `/v1/nodes/${id}/${action}`, body)

const serials = { evidence: 'BMC-1', other: 'BMC-2' }

/** An active node whose hardware is registered. */
const registeredNode = async (id: string): Promise<RawNode> => {
  const bmcSerial = `${serials.evidence}-${id}`
  await plane().api('POST', '/v1/nodes', { id, bmc_serial: bmcSerial })
  const { body } = await plane().api('POST', '/v1/tokens', { node: id })
  const node = rawNode(await plane().target(), 'ed25519', machine(id, 'before'))
  assert.equal((await node.enrollByToken(body.secret)).status, 200)
  assert.equal((await node.confirm()).status, 200)
  return node
}

const machine = (id: string, process: string, bmcSerial = `${serials.evidence}-${id}`): AgentEvidence =>
  evidenceOf(process, { hardware: { macs: [], bmc_serial: bmcSerial } })

const newBundle = async (id: string): Promise<RepairBundle> => {
  const { status, body } = await act(id, 'repair-bundle', { reason: 'its disk was replaced' })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

type Repaired = { readonly node: RawNode; readonly answer: Json; rehearse(): Promise<Reply> }

/** What `muster agent repair` does with a bundle. */
const repaired = async (before: RawNode, bundle: RepairBundle, evidence: AgentEvidence): Promise<Repaired> => {
  const target = { url: bundle.recovery_urls[0] ?? '', roots: bundle.recovery_roots }
  const { key, csr } = before.newRenewal()
  const { status, body } = await nodeCall(target, null, 'POST', '/v1/recover', {
    node_id: bundle.node_id,
    credential: { kind: 'repair', token: bundle.recovery_token },
    csr,
    failure: {
      class: 'identity_revoked_or_fenced',
      code: 'NODE_QUARANTINED',
      since: bundle.issued.at,
      cert_not_after: null,
    },
    evidence,
    register: { kind: 'bearer' },
    correlation: `repair-of-${bundle.node_id}`,
  })
  assert.equal(status, 200, JSON.stringify(body))
  const node = before.copy(evidence)
  node.use({ keyPem: key.pkcs8Pem(), chainPem: body.certificate_chain })
  const rehearse = () =>
    nodeCall(target, null, 'POST', '/v1/rehearse', {
      node_id: bundle.node_id,
      credential: { kind: 'bearer', token: body.recovery_token },
      counter: body.counter,
      evidence,
      disk_reserve: true,
      clock_skew_ms: 0,
    })
  return { node, answer: body, rehearse }
}

const reported = async (channel: RawChannel, number: number): Promise<void> => {
  channel.send('report', reportOf('after', number))
  await eventually(`report ${number} to be taken`, () =>
    channel.frames.some(({ type, body }) => type === 'reported' && body.number === number),
  )
}

const failedChecks = async (id: string): Promise<string[]> =>
  (await record(id)).repair.evidence.checks.filter(({ ok }: Json) => !ok).map(({ name }: Json) => name)

test('a repair bundle quarantines its node at once, holds no private key, and is shown once', async () => {
  const node = await registeredNode('bundled')
  const channel = await channelOf(node)
  const bundle = await newBundle('bundled')
  assert.equal((await endOf(channel))?.code, 'CLIENT_CERT_DENIED')
  assert.deepEqual([bundle.kind, bundle.node_id, bundle.domain], ['muster-repair-bundle-1', 'bundled', plane().domain])
  assert.match(bundle.recovery_token, /^repair_[A-Za-z0-9_-]{43}$/)
  assert.deepEqual(bundle.recovery_urls, [plane().recoveryUrl])
  assert.doesNotMatch(JSON.stringify(bundle), /PRIVATE KEY/)
  const seen = [await record('bundled'), ...(await journalEntries(plane(), { node: 'bundled' }))]
  assert.ok(!JSON.stringify(seen).includes(bundle.recovery_token))
  const { membership, repair } = await record('bundled')
  assert.deepEqual([membership, repair.reason, repair.used_at], ['quarantined', 'its disk was replaced', null])
  const issued = await journalEntries(plane(), { node: 'bundled', type: 'node.repair_bundle_issued' })
  assert.equal(issued.length, 1)
})

test('its channel takes reports, gets no configuration, and no other door opens; evidence and an operator let it back', async () => {
  const id = 'repaired'
  const before = await registeredNode(id)
  const { node, rehearse } = await repaired(before, await newBundle(id), machine(id, 'after'))
  const confirmed = await node.confirm({ persisted: false, detail: 'no' })
  assert.deepEqual([confirmed.status, confirmed.body.membership], [200, 'quarantined'])
  const { reply } = await node.renew()
  assert.deepEqual([reply.status, reply.body.code], [403, 'NODE_QUARANTINED'])

  const channel = await channelOf(node)
  channel.send('applied', { config_revision: 99, trust_revision: 0, persisted: false, detail: 'no' })
  await reported(channel, 1)
  await plane().api('PATCH', '/v1/profiles/gpu-cloud', { set: { description: 'changed while it is open' } })
  assert.deepEqual(await failedChecks(id), ['rehearsal'])
  const early = await act(id, 'release')
  assert.deepEqual([early.status, early.body.code], [409, 'NODE_STATE_CONFLICT'])

  const rehearsed = await rehearse()
  assert.equal(rehearsed.body.outcome, 'passed', JSON.stringify(rehearsed.body))
  await reported(channel, 2)
  await reported(channel, 3)
  const shown = await record(id)
  assert.deepEqual([shown.membership, shown.repair.evidence.passed, shown.config_revision], ['quarantined', true, 0])
  assert.deepEqual(shown.conditions, [])
  assert.deepEqual(
    channel.frames.map(({ type }) => type).filter((type) => type !== 'reported'),
    ['hello'],
  )

  assert.equal((await act(id, 'release')).status, 200)
  assert.equal((await endOf(channel))?.code, 'RELEASED')
  const back = await channelOf(node)
  await back.frame('config')
  assert.equal((await record(id)).membership, 'active')
  const told = (await journalEntries(plane(), { node: id })).map(({ type }) => type)
  assert.equal(told.filter((type) => type === 'node.repair_evidence').length, 2)
  back.destroy()
})

test('another machine than the registered one does not pass, whatever else it shows', async () => {
  const id = 'elsewhere'
  const before = await registeredNode(id)
  const { node, rehearse } = await repaired(before, await newBundle(id), machine(id, 'after', serials.other))
  await rehearse()
  const channel = await channelOf(node)
  await reported(channel, 1)
  assert.deepEqual(await failedChecks(id), ['hardware'])
  assert.equal((await act(id, 'release')).status, 409)
  channel.destroy()
})

test('a second bundle ends what the first one made', async () => {
  const id = 'twice'
  const before = await registeredNode(id)
  const { node } = await repaired(before, await newBundle(id), machine(id, 'after'))
  const channel = await channelOf(node)
  await newBundle(id)
  assert.equal((await endOf(channel))?.code, 'CLIENT_CERT_DENIED')
  const { status, body } = await node.confirm()
  assert.deepEqual([status, body.code], [403, 'NODE_QUARANTINED'])
})
