import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf, writesOf } from '../../test/fakes/expect-decision.ts'
import { alice, domainRow, minute, noonMs } from '../../test/fakes/sample-rows.ts'
import { decideChangeSettings } from './settings-rules.ts'

const change = (set: Record<string, unknown>) =>
  decideChangeSettings({ domain: domainRow(), profiles: ['gpu-cloud', 'edge'], set, by: alice, nowMs: noonMs })

test('values of the domain change, and the journal says from what to what', () => {
  const verdict = expectDecided(change({ livenessGraceMs: minute, defaultProfile: 'edge' }))
  assert.equal(verdict.settings.livenessGraceMs, minute)
  assert.deepEqual(writesOf(verdict, 'domain'), [verdict.settings])
  assert.deepEqual(readsOf(verdict), ['domain/domain@3'])
  assert.deepEqual(verdict.change.entries[0].body, {
    changes: ['livenessGraceMs: 300000 -> 60000', 'defaultProfile: "gpu-cloud" -> "edge"'],
  })
})

test('the name of a domain never changes', () => {
  expectRefused(change({ name: 'other.example' }), 'SETTING_INVALID', /never changes/)
})

test('an unknown setting, profile or value is refused by name', () => {
  expectRefused(change({ defaultProfile: 'absent' }), 'SETTING_INVALID', /one of gpu-cloud, edge/)
  expectRefused(change({ livenessGrace: 1 }), 'SETTING_INVALID', /there is no setting livenessGrace;/)
  expectRefused(change({ strangersPerMinute: 0 }), 'SETTING_INVALID', /from 1 to/)
  expectRefused(change({ clockToleranceMs: -1 }), 'SETTING_INVALID', /from 0 to/)
  expectRefused(change({ stuckEnrollmentMs: '10m' }), 'SETTING_INVALID', /whole number/)
})
