import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readPlaneFrame } from './plane-frame.ts'

const config = {
  revision: 1,
  vcluster: null,
  profile: { name: 'x', key_storage: 'file', key_types: [], lifetime_ms: 1000, renew_from: 0.5, renew_to: 0.6 },
  endpoints: { id: 'r', revision: 1, runtime: ['https://a'], stream: ['wss://a'] },
}
const text = (type: string, body: unknown): string => JSON.stringify({ stream: 0, seq: 1, ack: 0, type, body })

test('nothing a plane sends makes the reader throw', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.jsonValue().map((body) => text('config', body)),
      ),
      (sent) => {
        assert.ok(['frame', 'unknown', 'malformed'].includes(readPlaneFrame(sent).kind))
      },
    ),
  )
})

test('fields of a newer plane are let through', () => {
  const read = readPlaneFrame(text('config', { ...config, colour: 'red' }))
  assert.equal(read.kind === 'frame' && read.frame.type, 'config')
})

test('a frame type of a newer plane is distinguished from a broken frame', () => {
  assert.deepEqual(readPlaneFrame(text('dance', { id: 1 })), { kind: 'unknown', seq: 1, type: 'dance' })
  assert.equal(readPlaneFrame('{"type":"dance"}').kind, 'malformed')
})

test('a configuration the agent could not live with is refused', () => {
  const bad = [
    { ...config, profile: { ...config.profile, renew_to: 1 } },
    { ...config, profile: { ...config.profile, lifetime_ms: 0 } },
    { ...config, endpoints: { ...config.endpoints, stream: [] } },
    { ...config, endpoints: { ...config.endpoints, runtime: ['http://plain'] } },
    { ...config, endpoints: { ...config.endpoints, runtime: ['not a url'] } },
    { ...config, endpoints: { ...config.endpoints, runtime: Array.from({ length: 99 }, () => 'https://a') } },
  ]
  for (const body of bad) assert.equal(readPlaneFrame(text('config', body)).kind, 'malformed')
})

test('roots that are no certificates, or none at all, are refused', () => {
  for (const roots of [[], ['x'], ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']]) {
    assert.equal(readPlaneFrame(text('trust', { revision: 2, roots })).kind, 'malformed')
  }
})

test('a task is taken as it is, as long as it is no longer than any can be', () => {
  const read = readPlaneFrame(text('task', { task: 'task1.e30.c2ln' }))
  assert.ok(read.kind === 'frame' && read.frame.type === 'task' && read.frame.body.task === 'task1.e30.c2ln')
  assert.equal(readPlaneFrame(text('task', { task: 'a'.repeat(32_769) })).kind, 'malformed')
  assert.equal(readPlaneFrame(text('task_verifiers', { number: -1 })).kind, 'malformed')
})
