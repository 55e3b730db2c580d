// What agents report: taken once and in order, whichever channel it came over, and shown to operators.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evidenceOf, instanceOf, reportOf } from '../fakes/agent-words.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import type { RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { channelOf, endOf } from './channel-setup.ts'

const plane = sharedPlane({ args: ['--log-level', 'debug'] })
const record = async (id: string, of: Plane = plane()): Promise<Json> => (await of.api('GET', `/v1/nodes/${id}`)).body

const reportingNode = async (id: string, of: Plane = plane()): Promise<RawNode> =>
  (await activeNode(of, id)).copy(evidenceOf('a'))

const acknowledged = (channel: RawChannel): number[] =>
  channel.frames.filter(({ type }) => type === 'reported').map(({ body }) => body.number)

/** Waits for as many answers, and says which numbers they named. */
const answers = async (channel: RawChannel, count: number): Promise<number[]> => {
  await eventually(`${count} answers`, () => acknowledged(channel).length >= count)
  return acknowledged(channel)
}

/** Which reports of a node the log says were taken. */
const takenOf = (id: string, of: Plane = plane()): number[] =>
  of
    .stderr()
    .split('\n')
    .filter((line) => line.includes('"report":') && line.includes(`"node":"${id}"`))
    .map((line) => (JSON.parse(line) as { report: number }).report)

const conditionEntries = async (id: string): Promise<string[]> =>
  (await journalEntries(plane(), { node: id }))
    .filter(({ type }) => /condition/.test(type))
    .map(({ type, body }) => `${type.replace('node.condition_', '')} ${body.condition}`)

const condition = (name: 'disk_full' | 'clock_skew') => ({
  name,
  since: '2030-01-01T12:00:00.000Z',
  reason: `${name} it is`,
  evidence: { free: 0 },
})

test('each report is taken once and in order, over whichever channel it comes', async () => {
  const node = await reportingNode('numbered')
  const first = await channelOf(node)
  for (const number of [1, 2, 2, 4]) first.send('report', reportOf('a', number))
  assert.deepEqual(await answers(first, 4), [1, 2, 2, 2])

  const second = await channelOf(node)
  assert.deepEqual(await answers(second, 1), [2])
  for (const number of [2, 3, 4]) second.send('report', reportOf('a', number))
  assert.deepEqual(await answers(second, 4), [2, 2, 3, 4])
  first.send('report', reportOf('a', 5))
  assert.deepEqual(await answers(first, 5), [1, 2, 2, 2, 5])
  await eventually('the log to say so', () => takenOf('numbered').length === 5)
  assert.deepEqual(takenOf('numbered'), [1, 2, 3, 4, 5])
  for (const channel of [first, second]) channel.destroy()
})

test('what an agent claims of its node is a condition until it claims it no more, and is written down when it changes', async () => {
  const id = 'claiming'
  const channel = await channelOf(await reportingNode(id))
  const claims = [[], [condition('disk_full')], [condition('disk_full')], [condition('clock_skew')], []]
  for (const [at, conditions] of claims.entries()) channel.send('report', reportOf('a', at + 1, { conditions }))
  await answers(channel, claims.length)
  assert.deepEqual(await conditionEntries(id), [
    'raised disk_full',
    'cleared disk_full',
    'raised clock_skew',
    'cleared clock_skew',
  ])
  assert.deepEqual((await record(id)).conditions, [])
  channel.destroy()
})

test('an agent that changes its mind with every report fills neither the journal nor the memory of the plane', async () => {
  const id = 'fickle'
  const channel = await channelOf(await reportingNode(id))
  const count = 300
  for (let number = 1; number <= count; number++) {
    const conditions = number % 2 === 0 ? [] : [condition('disk_full')]
    channel.send('report', reportOf('a', number, { conditions }))
  }
  assert.equal((await answers(channel, count)).at(-1), count)
  assert.ok((await conditionEntries(id)).length <= 60)
  channel.destroy()
})

test('a report of another process than the channel ends it, and one that does not fit ends it too', async () => {
  for (const [id, body] of [
    ['foreign', reportOf('b', 1)],
    ['unfit', { ...reportOf('a', 1), more: 1 }],
  ] as const) {
    const channel = await channelOf(await reportingNode(id))
    channel.send('report', body)
    assert.equal((await endOf(channel))?.code, 'REQUEST_INVALID')
    assert.equal((await record(id)).evidence.reported_at, null)
  }
})

test('operators see what was reported last: seed 003, field by field', async () => {
  const id = 'shown'
  const channel = await channelOf(await reportingNode(id))
  const failure = {
    at: '2030-01-01T11:00:00.000Z',
    class: 'clock_skew',
    code: 'X',
    text: 'wrong\u001b[2J time',
  } as const
  const told = reportOf('a', 1)
  const connection = {
    ...{ recovery: ['https://plane.example:8442'], channel: null },
    ...{ plane_roots: ['a'.repeat(64)], recovery_roots: [], certificate_root: 'b'.repeat(64) },
  }
  channel.send('report', {
    ...told,
    clock_skew_ms: -5,
    renewal: { ...told.renewal, last_attempt: '2030-01-01T11:00:00.000Z', last_failure: failure },
    rehearsal: { at: '2030-01-01T10:00:00.000Z', outcome: 'passed', step: null, why: null },
    storage: { ...told.storage, diagnostics_writable: false },
    connection: { ...connection, runtime: ['https://plane\u001b[2J.example'] },
  })
  await answers(channel, 1)
  const { evidence, cert_not_after: notAfter } = await record(id)
  assert.deepEqual(evidence, {
    reported_at: told.at,
    cert_not_after: notAfter,
    identity_source: 'plane',
    clock_skew_ms: -5,
    endpoint_set: { id: 'runtime', revision: 7 },
    connection: { ...connection, runtime: ['https://plane [2J.example'] },
    last_exchange: null,
    last_renewal_attempt: '2030-01-01T11:00:00.000Z',
    last_renewal_failure: { ...failure, text: 'wrong [2J time' },
    last_recovery_attempt: null,
    last_recovery_failure: null,
    last_rehearsal: { at: '2030-01-01T10:00:00.000Z', outcome: 'passed', step: null, why: null },
    identity_writable: true,
    diagnostics_writable: false,
    disk_reserve: true,
    free_bytes: { identity: 1, diagnostic: 2, retry: 3, runtime: 4 },
    excluded_from_scheduling: { excluded: true, reasons: ['not assigned to a vCluster (maintenance mode)'] },
  })
  channel.destroy()
})

test('a rehearsal that never reached the plane is known from the report; one that passed is not believed on its word', async () => {
  const id = 'rehearsing'
  const channel = await channelOf(await reportingNode(id))
  const rehearsal = (outcome: 'passed' | 'failed') => ({
    at: new Date().toISOString(),
    outcome,
    step: outcome === 'failed' ? ('trust' as const) : null,
    why: outcome === 'failed' ? 'server_tls_untrusted' : null,
  })
  channel.send('report', reportOf('a', 1, { rehearsal: rehearsal('passed') }))
  channel.send('report', reportOf('a', 2, { rehearsal: rehearsal('failed') }))
  channel.send('report', reportOf('a', 3, { rehearsal: rehearsal('failed') }))
  await answers(channel, 3)
  const told = (await journalEntries(plane(), { node: id })).map(({ type }) => type)
  assert.deepEqual(
    told.filter((type) => /recoverable/.test(type)),
    ['node.unrecoverable'],
  )
  const { conditions, recoverable } = await record(id)
  assert.deepEqual(
    conditions.map(({ name }: Json) => name),
    ['not_recoverable'],
  )
  assert.equal(recoverable.proven, false)
  channel.destroy()
})

test('numbers go on after an orderly restart of the plane', async (t) => {
  const own = await startPlane(t, { args: ['--log-level', 'debug'] })
  const node = await reportingNode('restarted', own)
  const channel = await channelOf(node)
  for (const number of [1, 2, 3]) channel.send('report', reportOf('a', number))
  await answers(channel, 3)
  await own.stop()
  const again = await own.restart()
  const next = await channelOf(node)
  assert.deepEqual((await next.frame('reported')).body, { instance: instanceOf('a'), number: 3 })
  for (const number of [3, 4]) next.send('report', reportOf('a', number))
  assert.deepEqual(await answers(next, 3), [3, 3, 4])
  await eventually('the log to say so', () => takenOf('restarted', again).length === 1)
  assert.deepEqual([takenOf('restarted', own), takenOf('restarted', again)], [[1, 2, 3], [4]])
  next.destroy()
})
