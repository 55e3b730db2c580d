// Two processes that hold one identity: which of them stays, what becomes of the other, and who is never taken for a copy.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'
import { channelOf, endOf, refusedChannel } from './channel-setup.ts'

/** For tests that wait until it is over. */
const briefDrainMs = 1000
/** For tests in which it must not be over, however busy the machine is. */
const longDrainMs = 300_000

const plane = shared(async (scope) => {
  const started = await startPlane(scope)
  await started.api('PATCH', '/v1/domain', { set: { drainMs: briefDrainMs } })
  await started.api('POST', '/v1/profiles', { name: 'strict', from: 'gpu-cloud', set: { onDuplicate: 'fence' } })
  return started
})
const record = async (id: string): Promise<Json> => (await plane().api('GET', `/v1/nodes/${id}`)).body
const conditionsOf = async (id: string): Promise<string[]> =>
  (await record(id)).conditions.map(({ name }: Json) => name)

const machineOf = (name: string): Partial<AgentEvidence> => ({
  hardware: { macs: [], bmc_serial: `BMC-of-${name}` },
})

/** The machine that enrolled, and another with a copy of all it had then. */
const twoHolders = async (id: string, profile?: string): Promise<{ original: RawNode; copy: RawNode }> => {
  const node = await activeNode(plane(), id, profile)
  return {
    original: node.copy(evidenceOf('original', machineOf('original'))),
    copy: node.copy(evidenceOf('copy', machineOf('copy'))),
  }
}

/** Moves on to a new certificate, by way of a channel if one is given to be replaced. */
const rotated = async (node: RawNode): Promise<void> => {
  const { identity, reply } = await node.renew()
  assert.ok(identity, JSON.stringify(reply.body))
  node.use(identity)
}

/** Certificates that are replaced from now on are accepted until the test is over. */
const drainLong = async (t: TestContext): Promise<void> => {
  const set = (drainMs: number) => plane().api('PATCH', '/v1/domain', { set: { drainMs } })
  assert.equal((await set(longDrainMs)).status, 200)
  t.after(() => set(briefDrainMs))
}

/** What the plane says once the certificate that was replaced has been drained. */
const afterDrain = async (node: RawNode): Promise<{ status: number; code: string }> =>
  eventually(
    'the old certificate to have served',
    async () => {
      const { status, body } = await node.confirm()
      return status === 200 ? null : { status, code: body.code }
    },
    { withinMs: 10_000 },
  )

test('a copy that connects second is refused, the one with the live channel stays, and both are named', async () => {
  const { original, copy } = await twoHolders('second')
  const channel = await channelOf(original)
  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  assert.equal(channel.ended(), false)
  const { conditions, membership, scheduling } = await record('second')
  assert.equal(membership, 'active')
  const [{ name, evidence }] = conditions
  assert.equal(name, 'duplicate_identity')
  assert.match(evidence.claimant, /127\.0\.0\.1.*instance copy0000/)
  assert.match(evidence.claimant_hardware, /BMC-of-copy/)
  assert.match(evidence.holder, /127\.0\.0\.1.*instance original/)
  assert.match(evidence.holder_hardware, /BMC-of-original/)
  assert.ok(scheduling.reasons.includes('duplicate_identity'))

  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  const told = await journalEntries(plane(), { node: 'second', type: 'node.second_holder' })
  assert.equal(told.length, 1)
  channel.destroy()
})

test('where the profile says so both are fenced, and neither gets in again', async () => {
  const { original, copy } = await twoHolders('strict', 'strict')
  const channel = await channelOf(original)
  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  assert.equal((await endOf(channel))?.code, 'CLIENT_CERT_DENIED')
  const { membership, conditions } = await record('strict')
  assert.deepEqual([membership, conditions.map(({ name }: Json) => name)], ['quarantined', ['duplicate_identity']])
  for (const holder of [original, copy]) {
    const { status, body } = await holder.confirm()
    assert.deepEqual([status, body.code], [403, 'NODE_QUARANTINED'])
  }
})

test('a certificate that was replaced, from another process: refused while the holder is connected', async () => {
  const { original, copy } = await twoHolders('replaced')
  await rotated(original)
  const channel = await channelOf(original)
  assert.deepEqual(await afterDrain(copy), { status: 409, code: 'DUPLICATE_IDENTITY' })
  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  assert.equal(channel.ended(), false)
  assert.equal((await original.confirm()).status, 200)
  assert.deepEqual(await conditionsOf('replaced'), ['duplicate_identity'])
  channel.destroy()
})

test('the same without a connected holder fences both, since none can be known to be right', async () => {
  const { original, copy } = await twoHolders('offline')
  await rotated(original)
  const channel = await channelOf(original)
  channel.destroy()
  await eventually('the channel to be gone', async () => (await record('offline')).sessions.length === 0)
  assert.deepEqual(await afterDrain(copy), { status: 409, code: 'DUPLICATE_IDENTITY' })
  assert.equal((await record('offline')).membership, 'quarantined')
  const { status, body } = await original.confirm()
  assert.deepEqual([status, body.code], [403, 'NODE_QUARANTINED'])
  const quarantined = await journalEntries(plane(), { node: 'offline', type: 'node.quarantined' })
  assert.deepEqual(
    quarantined.map(({ actor }) => actor),
    ['system:lineage'],
  )
})

test('the holder itself, late on an old connection, is asked to use its newer certificate and not suspected', async () => {
  for (const connected of [true, false]) {
    const id = `late-${connected}`
    const { original } = await twoHolders(id)
    const late = original.copy(evidenceOf('original'))
    await rotated(original)
    const channel = await channelOf(original)
    if (!connected) {
      channel.destroy()
      await eventually('the channel to be gone', async () => (await record(id)).sessions.length === 0)
    }
    assert.deepEqual(await afterDrain(late), { status: 403, code: 'SERIAL_MISMATCH' })
    assert.deepEqual(await conditionsOf(id), [])
    assert.equal((await original.confirm()).status, 200)
    channel.destroy()
  }
})

test('a machine that said it could not keep its new certificate comes back with the one before: no copy', async () => {
  const { original, copy: restarted } = await twoHolders('forgetful')
  await rotated(original)
  const channel = await channelOf(original)
  channel.send('applied', { config_revision: 1, trust_revision: 1, persisted: false, detail: 'EROFS' })
  await eventually('that to be known', async () => (await conditionsOf('forgetful')).includes('not_persisted'))
  channel.destroy()
  await eventually('the channel to be gone', async () => (await record('forgetful')).sessions.length === 0)
  assert.deepEqual(await afterDrain(restarted), { status: 403, code: 'SERIAL_MISMATCH' })
  assert.deepEqual(await conditionsOf('forgetful'), ['not_persisted'])
})

test('an agent that says nothing of itself is judged as before: the certificate is refused, and it is written down', async () => {
  const { original } = await twoHolders('older')
  const older = original.copy(null)
  await rotated(original)
  assert.equal((await original.confirm()).status, 200)
  assert.deepEqual(await afterDrain(older), { status: 403, code: 'SERIAL_MISMATCH' })
  const { membership, conditions } = await record('older')
  assert.deepEqual([membership, conditions.map(({ name }: Json) => name)], ['active', ['duplicate_identity']])
})

test('leaving out who one is does not make one the process that is connected', async () => {
  const { original } = await twoHolders('silent')
  const thief = original.copy(null)
  const channel = await channelOf(original)
  const garbled = ['%%%', Buffer.from('{"instance":1}').toString('base64url'), 'x'.repeat(5000)]
  for (const evidence of [null, ...garbled]) {
    assert.deepEqual(await refusedChannel(thief, { evidence }), [409, 'DUPLICATE_IDENTITY'])
  }
  const { reply } = await thief.renew()
  assert.deepEqual([reply.status, reply.body.code], [409, 'DUPLICATE_IDENTITY'])
  assert.equal((await thief.confirm()).body.code, 'DUPLICATE_IDENTITY')
  assert.deepEqual([channel.ended(), (await record('silent')).certificates.length], [false, 1])
  channel.destroy()
})

test('a copy cannot say of a connected node that it could not keep its certificate, and be let in for that', async (t) => {
  await drainLong(t)
  const { original, copy } = await twoHolders('slandered')
  const before = await channelOf(original)
  assert.equal((await copy.confirm({ persisted: false })).body.code, 'DUPLICATE_IDENTITY')
  before.destroy()
  await rotated(original)
  assert.equal((await original.confirm()).status, 200)
  // Nobody is connected, and its certificate is still being drained.
  assert.equal((await copy.confirm({ persisted: false })).status, 200)
  assert.deepEqual(await conditionsOf('slandered'), ['duplicate_identity'])
})

test('a certificate that another process has replaced unseen is not taken for a late request of its holder', async () => {
  const { original, copy } = await twoHolders('overtaken')
  const channel = await channelOf(original)
  channel.destroy()
  await eventually('the channel to be gone', async () => (await record('overtaken')).sessions.length === 0)
  await rotated(copy)
  assert.equal((await copy.confirm()).status, 200)
  assert.deepEqual(await afterDrain(original), { status: 409, code: 'DUPLICATE_IDENTITY' })
  assert.equal((await record('overtaken')).membership, 'quarantined')
})

test('a rotation of one process, with requests on every certificate it has, is no second holder', async (t) => {
  await drainLong(t)
  const { original } = await twoHolders('rotating')
  let channel = await channelOf(original)
  for (let round = 0; round < 3; round++) {
    const before = original.copy(evidenceOf('original', machineOf('original')))
    const busy = Array.from({ length: 8 }, () => before.confirm())
    await rotated(original)
    const passedMs = fairStopwatch()
    const passive = await channelOf(original)
    assert.ok(passedMs() < 2_000, 'the passive channel was kept waiting')
    for (const { status } of await Promise.all([...busy, before.confirm(), original.confirm()])) {
      assert.equal(status, 200)
    }
    channel.destroy()
    channel = passive
  }
  assert.deepEqual(await conditionsOf('rotating'), [])
  channel.destroy()
})

test('a process that ended leaves room for the next at once', async () => {
  const { original, copy: restarted } = await twoHolders('restarted')
  const channel = await channelOf(original)
  channel.destroy()
  const passedMs = fairStopwatch()
  const next = await channelOf(restarted)
  assert.ok(passedMs() < 2_000)
  assert.deepEqual(await conditionsOf('restarted'), [])
  next.destroy()
})
