import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, bob, domainRow, hour, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import type { Row, Decided } from '#domain/core/change.ts'
import { openIssuance, type DomainSettings } from '#domain/core/domain-settings.ts'
import { decideHalt, decideResume, haltInWords, type Halted, type HaltFacts } from './issuance.ts'
import { issuanceStopped } from './node-certificate.ts'

const halted = (changes: Partial<Halted> = {}): Halted => ({
  kind: 'halted',
  by: 'operator:carol',
  sinceMs: noonMs - hour,
  reason: 'audit',
  renewals: false,
  ...changes,
})

const facts = (changes: Partial<HaltFacts> = {}): HaltFacts => ({
  domain: domainRow(),
  alert: null,
  newAlertId: 'alert-1',
  reason: 'a copy of the store is out',
  renewals: false,
  by: alice,
  nowMs: noonMs,
  ...changes,
})

const domainIn = (decided: Decided): DomainSettings =>
  (writesOf(decided, 'domain') as DomainSettings[])[0] ?? assert.fail()
const alertIn = (decided: Decided): Alert | null => (writesOf(decided, 'alert') as Alert[])[0] ?? null

test('a halt is in the row that every decision to issue reads, and raises its alert with it', () => {
  const verdict = expectDecided(decideHalt(facts()))
  assert.deepEqual(domainIn(verdict).issuance, {
    kind: 'halted',
    by: 'operator:alice',
    sinceMs: noonMs,
    reason: 'a copy of the store is out',
    renewals: false,
  })
  assert.ok(readsOf(verdict).includes('domain/domain@3'))
  assert.deepEqual(entryTypesOf(verdict), ['issuance.halted', 'alert.raised'])
  const { kind, severity, state } = alertIn(verdict) ?? assert.fail()
  assert.deepEqual([kind, severity, state.kind], ['issuance_halted', 'warning', 'open'])
})

test('a second halt has the new reason and scope and the old time; an earlier acknowledgement is cleared', () => {
  const domain = domainRow({ issuance: halted() })
  const alert = alertIn(expectDecided(decideHalt(facts({ nowMs: noonMs - hour })))) ?? assert.fail()
  const acknowledged = row({
    ...alert,
    state: { kind: 'acknowledged', by: 'carol', atMs: noonMs, note: null },
  } as const)
  const again = expectDecided(decideHalt(facts({ domain, alert: acknowledged, renewals: true, by: bob })))
  assert.deepEqual(domainIn(again).issuance, {
    ...halted({ by: 'operator:bob', reason: 'a copy of the store is out', renewals: true }),
  })
  assert.deepEqual(entryTypesOf(again), ['issuance.halted', 'alert.resolved', 'alert.raised'])
  const same = expectDecided(decideHalt(facts({ domain, alert: acknowledged, reason: 'audit' })))
  assert.deepEqual(entryTypesOf(same), ['issuance.halted'])
})

test('resuming resolves the alert; what is open cannot be resumed', () => {
  const alert = alertIn(expectDecided(decideHalt(facts()))) ?? assert.fail()
  const verdict = expectDecided(decideResume(facts({ domain: domainRow({ issuance: halted() }), alert: row(alert) })))
  assert.deepEqual(domainIn(verdict).issuance, openIssuance)
  assert.deepEqual(entryTypesOf(verdict), ['issuance.resumed', 'alert.resolved'])
  expectRefused(decideResume(facts()), 'ISSUANCE_NOT_HALTED')
})

test('a refusal during a halt names the reason and a retry time; renewals go on only where that was ordered', () => {
  const asked = (issuance: DomainSettings['issuance'], what: 'known' | 'new') => {
    const refusal = issuanceStopped(domainRow({ issuance }).value, what)
    return refusal === null ? null : [refusal.code, refusal.detail, refusal.retryAfterMs]
  }
  const no = ['ISSUANCE_HALTED', 'audit', 60_000]
  assert.deepEqual([asked(openIssuance, 'new'), asked(openIssuance, 'known')], [null, null])
  assert.deepEqual([asked(halted(), 'new'), asked(halted(), 'known')], [no, no])
  assert.deepEqual([asked(halted({ renewals: true }), 'new'), asked(halted({ renewals: true }), 'known')], [no, null])
  assert.equal(haltInWords(domainRow().value), null)
  assert.match(
    haltInWords(domainRow({ issuance: halted({ renewals: true }) }).value) ?? '',
    /carol.*renewals go on.*audit/,
  )
})

test('whatever operators do in whatever order, there is an alert exactly while issuance is halted', () => {
  const step = fc.record({ halt: fc.boolean(), reason: fc.constantFrom('one', 'other'), renewals: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let domain = domainRow()
      let alert: Row<Alert> | null = null
      let nowMs = noonMs
      for (const { halt, reason, renewals } of steps) {
        nowMs += 1000
        const given: HaltFacts = { ...facts({ domain, alert, nowMs, reason, renewals }), newAlertId: `a-${nowMs}` }
        const verdict = halt ? decideHalt(given) : decideResume(given)
        if (verdict.kind === 'refused') {
          assert.equal(domain.value.issuance.kind, 'open')
          continue
        }
        domain = row(domainIn(verdict))
        const raised = alertIn(verdict)
        if (raised !== null) alert = row(raised)
        assert.equal(domain.value.issuance.kind === 'halted', alert !== null && alert.value.state.kind !== 'resolved')
      }
    }),
  )
})
