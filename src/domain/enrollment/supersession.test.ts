import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, holder, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { HolderFacts } from '#domain/identity/duplicate.ts'
import type { Admission } from './enrollment.ts'
import { hasComeBack, supersessionAlert } from './supersession.ts'

const closed = { silentMs: 40_000, closedByHolder: true } as const
const before = holder(1, { machine: 'm1', bmcSerial: 'SN-1', source: '192.0.2.1' })
const again = (changes: Partial<HolderFacts> = {}): HolderFacts => ({ ...before, instance: 'another', ...changes })
const comesBack = (claimant: HolderFacts, probe: Parameters<typeof hasComeBack>[0]['probe'] = closed) =>
  hasComeBack({ probe, holders: { claimant, holder: before } })

test('P1: a machine that closed its channel and shows the same machine from the same address has come back', () => {
  assert.equal(comesBack(again()), true)
})

test('P1: a caller that differs from the last holder in machine, BMC serial or address has not, nor one that hides them', () => {
  assert.equal(comesBack(again({ machine: 'm2' })), false)
  assert.equal(comesBack(again({ machine: null })), false)
  assert.equal(comesBack(again({ bmcSerial: 'SN-2' })), false)
  assert.equal(comesBack(again({ source: '192.0.2.2' })), false)
  assert.equal(hasComeBack({ probe: closed, holders: { claimant: again(), holder: null } }), false)
  assert.equal(hasComeBack({ probe: closed, holders: null }), false)
})

test('P1: where a channel went silent, or its end is unknown, it is a supersession by silence', () => {
  assert.equal(comesBack(again(), { silentMs: 40_000 }), false)
  assert.equal(comesBack(again(), 'not-tried'), false)
})

test('P1: the alert names the hardware of both whole, before their processes', () => {
  const shown = again({ macs: Array.from({ length: 4 }, (_, at) => `52:54:00:00:00:0${at}`), agentVersion: '0.2.1' })
  const admission = {
    facts: { by: alice, nowMs: noonMs, probe: closed, holders: { claimant: shown, holder: shown } },
    before: { id: 'hpc-1' },
  }
  const { wanted } = supersessionAlert(admission as unknown as Admission, null, 'A1')
  const both =
    /52:54:00:00:00:03, (an agent without an instance|instance \w+), agent 0\.2\.1.*; before it: .*52:54:00:00:00:03, /
  assert.match(wanted?.reason ?? '', both)
  assert.doesNotMatch(wanted?.reason ?? '', /…/)
})
