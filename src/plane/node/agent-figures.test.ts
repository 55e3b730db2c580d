import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#domain/core/node.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { reportOf } from '../../../test/fakes/agent-words.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import { agentSeries, pairsOf, type Counts } from './agent-counts.ts'
import { openAgentFigures } from './agent-figures.ts'

const node: Node = nodeRow('active').value

const counting = (process: string, number: number, attempts: number, change: Partial<ReportBody> = {}): ReportBody => {
  const report = reportOf(process, number)
  return { ...report, renewal: { ...report.renewal, attempts }, ...change }
}

const wordsOf = (growth: Counts): string[] =>
  [...pairsOf(growth)].map(([place, count]) => {
    const { counter, labels } = agentSeries[place] ?? assert.fail()
    return [counter, ...Object.values(labels), count].join(' ')
  })

const setUp = () => {
  const grown: string[] = []
  const clock = manualClock(noonMs)
  return { clock, grown, figures: openAgentFigures(clock, (_node, growth) => grown.push(...wordsOf(growth))) }
}

test('only what a process counted since its last report is counted, and nothing twice', () => {
  const { figures, grown } = setUp()
  figures.reported(node, counting('a', 1, 3))
  figures.reported(node, counting('a', 2, 5))
  figures.reported(node, counting('a', 2, 9))
  assert.deepEqual(grown, ['cert_renewal_attempts_total 3', 'cert_renewal_attempts_total 2'])
})

test('a process that starts anew counts from 0, and one that counts backwards adds nothing', () => {
  const { figures, grown } = setUp()
  figures.reported(node, counting('a', 1, 3))
  figures.reported(node, counting('b', 1, 1))
  figures.reported(node, counting('b', 2, 0))
  assert.deepEqual(grown, ['cert_renewal_attempts_total 3', 'cert_renewal_attempts_total 1'])
})

test('what another replica has counted is not counted again', () => {
  const { figures, grown } = setUp()
  figures.recalled(node.id, counting('a', 7, 30))
  assert.deepEqual([...figures.all()], [])
  figures.reported(node, counting('a', 8, 31))
  assert.deepEqual(grown, ['cert_renewal_attempts_total 1'])
})

test('words that a node made up are one, and an absurd count does not drown the others', () => {
  const { figures, grown } = setUp()
  const { storage } = reportOf('a', 1)
  figures.reported(
    node,
    counting('a', 1, Number.MAX_SAFE_INTEGER, {
      storage: {
        ...storage,
        diagnostic_write_failures: { ENOSPC: 2, EMADEUP: 1, EWORSE: 1 },
        dropped_records: [
          { source: 'log', reason: 'too_many', count: 4000 },
          { source: 'x', reason: 'y', count: 1 },
        ],
      },
    }),
  )
  assert.deepEqual(grown, [
    'cert_renewal_attempts_total 100',
    'local_diagnostic_write_failures_total ENOSPC 2',
    'local_diagnostic_write_failures_total other 2',
    'observability_dropped_records_total log too_many 4000',
    'observability_dropped_records_total other other 1',
  ])
})

test('no more recoveries succeed than were tried since the report before', () => {
  const { figures, grown } = setUp()
  const recovering = (number: number, tried: number, successes: number): ReportBody => {
    const report = reportOf('a', number)
    const attempts = { ...report.recovery.attempts, cert_expired: tried }
    return { ...report, recovery: { ...report.recovery, attempts, successes } }
  }
  figures.reported(node, recovering(1, 0, 50))
  assert.deepEqual(grown, [])
  figures.reported(node, recovering(2, 3, 60))
  figures.reported(node, recovering(3, 5, 61))
  assert.deepEqual(grown.toSorted(), [
    'recovery_enrollment_attempts_total cert_expired 2',
    'recovery_enrollment_attempts_total cert_expired 3',
    'recovery_enrollment_success_total 1',
    'recovery_enrollment_success_total 3',
  ])
})

test('a node is shown with what it reported last, until it has no channel here', () => {
  const { figures, clock } = setUp()
  figures.outputs(node.id, [{ name: 'web', endsMs: noonMs, inPlace: true }])
  assert.deepEqual([...figures.all()], [])
  clock.advance(1000)
  figures.reported(node, reportOf('a', 1))
  const [[id, shown] = assert.fail()] = figures.all()
  assert.deepEqual([id, shown.profile, shown.vcluster], [node.id, node.profile, null])
  assert.equal(shown.reportedAtMs, noonMs + 1000)
  assert.equal(shown.outputs.length, 1)
  figures.gone(node.id)
  assert.deepEqual([...figures.all()], [])
})
