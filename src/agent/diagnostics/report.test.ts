import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { Errors } from 'typebox/value'
import { rehearsalSteps, failureClasses } from '#domain/core/node.ts'
import { channelFrameLimit } from '#wire/channel/channel.ts'
import { noFigures } from './figures.ts'
import { ReportBody } from '#wire/node/report.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { withEvent, type RecordedEvent } from './events.ts'
import type { Recorded } from './record.ts'
import { conditionsOf, reportOf } from './report.ts'
import { places } from './status-file.ts'

const text = fc.string({ maxLength: 3000, unit: 'binary' })
const number = fc.oneof(fc.double(), fc.constantFrom(NaN, Infinity, -Infinity, -1, 1e300, 0.5))
const orNull = <T>(what: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(what, { nil: null })
const failureClass = fc.constantFrom(...failureClasses)
const counts = fc.dictionary(failureClass, number)
const evidence = fc.dictionary(
  fc.oneof(text, fc.constantFrom('errno', 'path')),
  fc.oneof(text, number, fc.constant(null)),
)
const trouble = fc.record({ code: text, text, next: text, class: orNull(failureClass), evidence })
const failure = orNull(fc.record({ atMs: number, trouble }))

const signs = fc.record({
  source: fc.constantFrom('plane' as const, 'static' as const, 'spire' as const),
  clockSkewMs: number,
  lastExchangeMs: orNull(number),
  renewal: fc.record({ attempts: number, failures: counts, lastAttemptMs: orNull(number), lastFailure: failure }),
  recovery: fc.record({
    attempts: counts,
    successes: number,
    failures: counts,
    lastAttemptMs: orNull(number),
    lastFailure: failure,
  }),
  rehearsal: orNull(
    fc.record({
      atMs: number,
      outcome: fc.constantFrom('passed' as const, 'failed' as const),
      step: orNull(fc.constantFrom(...rehearsalSteps)),
      why: orNull(text),
    }),
  ),
  driftTotal: number,
  tasks: fc.constant(noFigures.tasks),
  diagnosticWriteFailures: fc.dictionary(fc.oneof(text, fc.constantFrom('ENOSPC', 'EROFS')), number),
  dropped: fc.array(fc.record({ source: text, reason: text, count: number }), { maxLength: 40 }),
})

const events = fc.array(
  trouble.map((what) => ({
    ...what,
    place: 'renewal',
    event: 'failed' as const,
    correlation: what.code,
    next_try: null,
  })),
  { maxLength: 40 },
)

const standing = fc.array(
  fc.record({ place: fc.constantFrom(...places), what: trouble, since: fc.constant('2026-11-15T12:00:00.000Z') }),
  { maxLength: 8 },
)

const identity: Identity = {
  source: 'plane',
  nodeId: 'gpu-001',
  domain: 'example.test',
  epoch: 1,
  profile: { name: 'x', key_storage: 'file', key_types: ['p256'], lifetime_ms: 1, renew_from: 0.5, renew_to: 0.6 },
  endpoints: { id: 'r', revision: 1, runtime: ['https://a'], stream: ['wss://a'] },
  roots: [],
  trustRevision: 0,
  withdrawnIssuers: [],
  issuerRoots: { revision: 0, roots: [] },
  graceMs: 1,
  understands: [],
  marked: false,
  origin: { url: 'https://a', rootFingerprint: 'ab', usedSecretHash: null },
  current: { keyPem: 'k', chainPem: 'c', rootPem: null, serial: 'ab12', proven: true, issuedAtMs: 0, notAfterMs: 1 },
  previous: null,
  counter: null,
  recovery: null,
  clockToleranceMs: 300_000,
}

test('a report fits the schema whatever the agent has seen', () => {
  fc.assert(
    fc.property(signs, events, standing, number, text, (seen, noted, troubles, figure, word) => {
      const free = { identity: figure, diagnostic: figure, retry: figure, runtime: figure }
      const story = noted.reduce<readonly RecordedEvent[]>(
        (so, one) => withEvent(so, one, '2026-11-15T12:00:00.000Z'),
        [],
      )
      const now = troubles.map(({ place, what, since }) => ({ ...what, place, since, attempts: 1, next_try_at: null }))
      const channel = { open: true, since: '', url: 'wss://a' }
      const current = { ...identity.current, serial: word, notAfterMs: figure }
      const report = reportOf({
        clock: { nowMs: () => figure },
        keeper: {
          credentials: () => ({
            identity: { ...identity, current, endpoints: { ...identity.endpoints, id: word, revision: figure } },
            request: null,
          }),
        },
        record: {
          now: () => ({
            figures: seen,
            events: story,
            status: { troubles: now, channel } as unknown as Recorded['status'],
          }),
          pressedSince: () => '2026-11-15T12:00:00.000Z',
        },
        storage: {
          reserve: () => false,
          errno: () => word,
          freeBytes: () => free,
          identityWritable: () => false,
          diagnosticsWritable: () => false,
        },
      })
      const sent = JSON.stringify({ instance: 'A'.repeat(22), number: 1, ...report })
      assert.ok(Buffer.byteLength(sent) < channelFrameLimit - 1024)
      const body: unknown = JSON.parse(sent)
      assert.deepEqual([...Errors(ReportBody, body)].slice(0, 3), [])
    }),
    { numRuns: 300 },
  )
})

test('conditions are claimed for the classes that are conditions, each once, with the oldest trouble', () => {
  const standingFor = (place: (typeof places)[number], since: string, what: 'disk_full' | 'cert_expired' | null) => ({
    place,
    since,
    class: what,
    code: 'x',
    text: `text of ${place}`,
    next: '',
    attempts: 1,
    next_try_at: null,
    evidence: { errno: 'ENOSPC', 'Not A Name': 1 },
  })
  const free = { identity: 1, diagnostic: 2, retry: 3, runtime: 4 }
  const claimed = conditionsOf(
    [
      standingFor('storage', '2026-02-01', 'disk_full'),
      standingFor('renewal', '2026-01-01', 'disk_full'),
      standingFor('recovery', '2026-01-01', 'cert_expired'),
      standingFor('channel', '2026-01-01', null),
    ],
    null,
    free,
  )
  assert.deepEqual(claimed, [
    { name: 'disk_full', since: '2026-01-01', reason: 'text of renewal', evidence: { errno: 'ENOSPC' } },
  ])
  assert.deepEqual(
    conditionsOf([], '2026-01-01', free).map(({ name, evidence: facts }) => [name, facts]),
    [['node_observability_disk_pressure', { free_bytes: 2 }]],
  )
})
