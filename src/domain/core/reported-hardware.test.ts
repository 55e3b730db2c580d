import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeRow } from '../../../test/fakes/sample-rows.ts'
import type { HardwareIdentity, Node } from './node.ts'
import { hardwareAfterRenewal, hardwareFor, isOtherMachine, knownHardware } from './reported-hardware.ts'

const [a, b, c] = ['02:00:00:00:00:0a', '02:00:00:00:00:0b', '02:00:00:00:00:0c'] as const
const of = (macs: readonly string[], bmcSerial: string | null = null): HardwareIdentity => ({ macs, bmcSerial })
const node = (hardware: HardwareIdentity | null, epoch = 4): Node =>
  nodeRow('active', hardware === null ? {} : { reportedHardware: { ...hardware, epoch } }).value

test('R-010: a machine is another one where it contradicts what is known, or shows nothing of it', () => {
  const cases: readonly (readonly [HardwareIdentity, HardwareIdentity, boolean])[] = [
    [of([a, b], 'S1'), of([a, b], 'S1'), false],
    // One card replaced, or the serial number readable at one time only.
    [of([a, b], 'S1'), of([b, c], 'S1'), false],
    [of([a], 'S1'), of([a]), false],
    [of([a]), of([a], 'S1'), false],
    [of([], 'S1'), of([a], 'S1'), false],
    [of([a], 'S1'), of([a], 'S2'), true],
    [of([a], 'S1'), of([c], 'S1'), true],
    [of([a]), of([c]), true],
    [of([a]), of([]), true],
    [of([], 'S1'), of([a]), true],
  ]
  for (const [known, shown, other] of cases) {
    assert.equal(isOtherMachine(known, shown), other, `${JSON.stringify(known)} ${JSON.stringify(shown)}`)
  }
})

test('R-010: what is known holds for its own epoch: a replica of the release before starts one without it', () => {
  assert.deepEqual(knownHardware(node(of([a]))), { macs: [a], bmcSerial: null, epoch: 4 })
  assert.equal(knownHardware(node(of([a]), 3)), null)
  assert.equal(knownHardware(node(null)), null)
})

test('R-010: a renewal makes hardware known, follows its parts, and does not follow to another machine', () => {
  const after = (known: HardwareIdentity | null, shown: HardwareIdentity) =>
    hardwareAfterRenewal(node(known), shown).reportedHardware
  assert.deepEqual(after(null, of([b, a], 'S1')), { macs: [a, b], bmcSerial: 'S1', epoch: 4 })
  assert.deepEqual(after(of([a, b], 'S1'), of([b, c])), { macs: [b, c], bmcSerial: 'S1', epoch: 4 })
  assert.equal(after(of([a]), of([c])), undefined)
  assert.equal(after(null, of([])), undefined)
})

test('R-010: a new epoch starts with what the caller shows; a caller that shows nothing leaves what was known', () => {
  assert.deepEqual(hardwareFor(5, of([c]), of([a], 'S1')).reportedHardware, { macs: [c], bmcSerial: null, epoch: 5 })
  assert.deepEqual(hardwareFor(5, of([a]), of([a, b], 'S1')).reportedHardware, { macs: [a], bmcSerial: 'S1', epoch: 5 })
  assert.deepEqual(hardwareFor(5, of([]), of([a])).reportedHardware, { macs: [a], bmcSerial: null, epoch: 5 })
  assert.deepEqual(hardwareFor(5, of([]), null), {})
})

test('R-010: a row keeps a few addresses, and no serial number that many machines share or that holds a secret', () => {
  const many = Array.from({ length: 64 }, (_, at) => `02:00:00:00:00:${at.toString(16).padStart(2, '0')}`)
  assert.equal(hardwareFor(5, of(many), null).reportedHardware?.macs.length, 16)
  assert.deepEqual(hardwareFor(5, of([], 'Default string'), null), {})
  const secret = `enroll_${'a'.repeat(43)}`
  assert.equal(hardwareFor(5, of([], secret), null).reportedHardware?.bmcSerial, '[secret]')
})
