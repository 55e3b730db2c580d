import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holder } from '../../test/fakes/sample-rows.ts'
import type { HolderFacts } from './duplicate.ts'
import { hasComeBack } from './supersession.ts'

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

test('P1: where a channel went silent, or nobody knows how it ended, it is a supersession by silence', () => {
  assert.equal(comesBack(again(), { silentMs: 40_000 }), false)
  assert.equal(comesBack(again(), 'not-tried'), false)
})
