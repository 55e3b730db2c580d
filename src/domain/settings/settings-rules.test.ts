import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, minute, noonMs } from '../../../test/fakes/sample-rows.ts'
import { decideChangeSettings } from './settings-rules.ts'

const change = (set: Record<string, unknown>, addressesHeld = false) =>
  decideChangeSettings({
    ...{
      domain: domainRow(),
      profiles: new Map([
        ['gpu-cloud', 5],
        ['edge', 6],
      ]),
      addressesHeld,
    },
    ...{ set, by: alice, nowMs: noonMs },
  })

test('values of the domain change, and the journal says from what to what', () => {
  const verdict = expectDecided(change({ livenessGraceMs: minute, defaultProfile: 'edge' }))
  assert.equal(verdict.settings.livenessGraceMs, minute)
  assert.deepEqual(writesOf(verdict, 'domain'), [verdict.settings])
  assert.deepEqual(readsOf(verdict), ['domain/domain@3', 'profile/edge@6'])
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

test('what nodes without a vCluster run under is set like the rest', () => {
  const timeSync = { name: 'chronyd', command: ['/usr/sbin/chronyd', '-d'] }
  const set = { 'maintenance.timeSync': timeSync, 'maintenance.policy.execWhitelist': ['dmesg'] }
  const { maintenance } = expectDecided(change(set)).settings
  assert.deepEqual([maintenance.timeSync, maintenance.policy.execWhitelist], [timeSync, ['dmesg']])
  assert.equal(expectDecided(change({ 'maintenance.timeSync': null })).settings.maintenance.timeSync, null)
  for (const wrong of [
    { name: 'Chrony', command: ['x'] },
    { name: 'chronyd', command: [] },
    { name: 'chronyd', command: 'chronyd -d' },
    { name: 'chronyd', command: ['x'], user: 'root' },
    { name: 'chronyd', command: ['x'.repeat(2048)] },
    'chronyd',
  ])
    expectRefused(change({ 'maintenance.timeSync': wrong }), 'SETTING_INVALID', /takes null, or a service/)
  expectRefused(change({ 'maintenance.policy.enforcementMode': 'off' }), 'SETTING_INVALID', /observe, enforce/)
  expectRefused(change({ maintenance: {} }), 'SETTING_INVALID', /no setting maintenance;/)
})

test('the prefix of the WireGuard network is one in its canonical form, and stays while addresses are held', () => {
  for (const overlayPrefix of ['fd12:3456:789a::/64', '2001:db8::/48', 'fd00::/112', null])
    assert.equal(expectDecided(change({ overlayPrefix })).settings.overlayPrefix, overlayPrefix)
  for (const overlayPrefix of [
    'fd12:3456:789A::/64',
    'fd12:3456:789a:0::/64',
    'fd12:3456:789a::1/64',
    'fd12:3456:789a::/47',
    'fd00::/113',
    'fe80::/64',
    'ff02::/64',
    '10.0.0.0/64',
    7,
  ])
    expectRefused(change({ overlayPrefix }), 'SETTING_INVALID', /IPv6 prefix/)
  expectRefused(change({ overlayPrefix: 'fd00::/64' }, true), 'SETTING_INVALID', /stays as long as nodes/)
  expectDecided(change({ overlayPrefix: null, drainMs: 5 }, true))
})
