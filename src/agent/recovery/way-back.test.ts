import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { seededRandom } from '../../../test/fakes/seeded-random.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import { classified, trouble } from '#agent/core/trouble.ts'
import { openEpisode } from './episode.ts'
import { reasonToRecover } from './way-back.ts'

const startMs = 1_800_000_000_000
const stranger = classified(trouble('server_tls_untrusted', 'Not our plane.', 'Look'), 'server_tls_untrusted')
const identity = {
  nodeId: 'gpu-001',
  domain: 'example.test',
  endpoints: { id: 'runtime', revision: 1, runtime: [], stream: [], recovery: ['https://plane.example.test:8442'] },
  recovery: { trust: { roots: [], statement_keys: [] }, credential: { kind: 'bearer', token: 'x' } },
  counter: null,
  current: { serial: 'aa', notAfterMs: startMs + 3_600_000 },
} as unknown as Identity

const setUp = () => {
  const clock = manualClock(startMs)
  const episode = openEpisode(clock, seededRandom(7), null)
  const silent = { channel: () => {}, trouble: () => {} } as unknown as AgentRecord
  const keeper = { credentials: () => ({ identity, request: null }) }
  const agent = { clock, episode, keeper, bundles: { find: () => null } } as unknown as Parameters<
    typeof reasonToRecover
  >[0]
  return { clock, record: episode.listening(silent), reason: () => reasonToRecover(agent, identity)?.code ?? null }
}

test('three untrusted servers in a row are a reason to recover, and fewer are not', () => {
  const { record, reason } = setUp()
  record.trouble('channel', stranger, null)
  record.trouble('channel', stranger, null)
  assert.equal(reason(), null)
  record.trouble('channel', stranger, null)
  assert.equal(reason(), 'server_tls_untrusted')
})

test('while a channel is open, neither untrusted servers nor our clock are a reason to recover', () => {
  const { record, clock, reason } = setUp()
  record.channel(true, 'wss://plane.example.test')
  for (let met = 0; met < 5; met++) record.trouble('renewal', stranger, null)
  assert.equal(reason(), null)
  clock.advance(3_600_000)
  assert.equal(reason(), null)
  record.channel(false, null)
  assert.equal(reason(), 'cert_expired')
})
