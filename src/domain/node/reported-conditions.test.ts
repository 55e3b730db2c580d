import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided } from '../../../test/fakes/expect-decision.ts'
import { alice, minute, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { ConditionName } from '#domain/core/node.ts'
import { decideReported, type ReportedFacts } from './reported-conditions.ts'

const stands = (name: ConditionName) => ({ name, sinceMs: noonMs - minute, reason: 'r', evidence: {} })
const condition = (name: ReportedFacts['reported'][number]['name']) => ({ name, reason: 'so', evidence: { free: 0 } })

test('one report raises what is claimed and clears what no longer is, in one change', () => {
  const node = nodeRow('active', { conditions: [stands('disk_full'), stands('spoof_suspected')] })
  const reported = [condition('clock_skew'), condition('clock_skew')]
  const verdict = expectDecided(decideReported({ node, reported, by: alice, nowMs: noonMs }))
  assert.deepEqual(
    verdict.node.conditions.map(({ name, sinceMs }) => [name, sinceMs]),
    [
      ['spoof_suspected', noonMs - minute],
      ['clock_skew', noonMs],
    ],
  )
  assert.deepEqual(entryTypesOf(verdict), ['node.condition_cleared', 'node.condition_raised'])
})

test('an existing condition stays as it was raised, and a report without changes writes nothing', () => {
  const node = nodeRow('active', { conditions: [stands('disk_full'), stands('not_persisted')] })
  const report = (reported: ReportedFacts['reported']) => decideReported({ node, reported, by: alice, nowMs: noonMs })
  assert.equal(report([condition('disk_full')]).kind, 'unchanged')
  const both = expectDecided(report([condition('disk_full'), condition('clock_skew')]))
  assert.equal(both.node.conditions[0]?.sinceMs, noonMs - minute)
})

test('a tombstone has no conditions', () => {
  const node = nodeRow('revoked')
  assert.equal(decideReported({ node, reported: [condition('disk_full')], by: alice, nowMs: noonMs }).kind, 'unchanged')
})
