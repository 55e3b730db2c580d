import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { seededRandom } from '../../../test/fakes/seeded-random.ts'
import type { KeyRequest } from '#agent/state/credentials.ts'
import { classified, trouble } from '#agent/core/trouble.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import { openEpisode } from './episode.ts'

const away = classified(trouble('endpoint_unreachable', 'Nobody answers.', 'Wait'), 'endpoint_unreachable')
const stranger = classified(trouble('server_tls_untrusted', 'Not our plane.', 'Look'), 'server_tls_untrusted')

const setUp = (left: KeyRequest | null = null) => {
  const clock = manualClock(1_800_000_000_000)
  const told: (string | null)[] = []
  const record = {
    channel: () => {},
    trouble: (_place: string, _what: unknown, _next: unknown, correlation: string | null) => told.push(correlation),
  } as unknown as AgentRecord
  const episode = openEpisode(clock, seededRandom(7), left)
  return { clock, told, episode, record: episode.listening(record) }
}

test('everything that goes wrong until a channel opens is one story', () => {
  const { record, clock, episode, told } = setUp()
  record.trouble('channel', away, null)
  clock.advance(60_000)
  record.trouble('renewal', stranger, null)
  record.trouble('recovery', away, null)
  assert.equal(new Set(told).size, 1)
  const story = episode.current() ?? assert.fail()
  assert.equal(story.sinceMs, 1_800_000_000_000)
  assert.equal(story.trouble, stranger)
  record.channel(true, 'wss://a')
  assert.equal(episode.current(), null)
  record.trouble('channel', away, null)
  assert.equal(new Set(told).size, 2)
})

test('a story that began under a wrong clock is dated by the right one, once that is known', () => {
  const { clock, episode } = setUp()
  episode.failed(away)
  clock.advance(60_000)
  clock.set(1_900_000_000_000)
  assert.equal(episode.current()?.sinceMs, 1_900_000_000_000 - 60_000)
})

test('a full disk or a wrong clock is another story', () => {
  const { record, episode, told } = setUp()
  record.trouble('storage', away, null)
  record.trouble('clock', away, null)
  assert.equal(episode.current(), null)
  assert.deepEqual(told, [null, null])
})

test('untrusted servers are counted in a row', () => {
  const { record, episode } = setUp()
  record.trouble('channel', stranger, null)
  record.trouble('renewal', stranger, null)
  assert.equal(episode.distrusted(), 2)
  record.trouble('channel', away, null)
  assert.equal(episode.distrusted(), 0)
})

test('untrusted servers are no reason to recover for a day after a recovery brought the same roots', () => {
  const { record, clock, episode } = setUp()
  record.trouble('channel', stranger, null)
  episode.begunAnew('same')
  record.trouble('channel', stranger, null)
  assert.equal(episode.distrusted(), 0)
  // Somebody who lets the plane through for a moment does not get another recovery out of us.
  record.channel(true, 'wss://a')
  record.channel(false, null)
  episode.begunAnew('kept')
  record.trouble('channel', stranger, null)
  assert.equal(episode.distrusted(), 0)
  clock.advance(86_400_000)
  assert.equal(episode.distrusted(), 1)
})

test('other roots have to prove themselves anew', () => {
  const { record, episode } = setUp()
  episode.begunAnew('same')
  episode.begunAnew('other')
  record.trouble('channel', stranger, null)
  assert.equal(episode.distrusted(), 1)
})

test('a recovery that a process before this one has begun goes on with its story', () => {
  const purpose = { kind: 'recover', epoch: 3, correlation: '01ABCDEFGH' } as const
  const left = {
    purpose,
    keyType: 'p256',
    keyPem: '',
    csrPem: '',
    sinceMs: 5,
    recoveryKey: null,
    insteadOf: null,
    madeFor: null,
  } as const
  const { episode } = setUp(left)
  assert.equal(episode.current(), null)
  assert.deepEqual(episode.failed(away), { correlation: '01ABCDEFGH', sinceMs: 5, trouble: away })
  episode.over()
  assert.notEqual(episode.failed(away).correlation, '01ABCDEFGH')
})
