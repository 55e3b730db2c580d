import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { alice as by, nodeRow, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { nothingTagged, type HardwareProfile, type HardwareState } from '#domain/core/hardware-profile.ts'
import {
  decideCreateHardwareProfile,
  decideMachineReport,
  decideRemoveHardwareProfile,
  decideTag,
  skuOf,
} from './hardware-rules.ts'

const profile = (tag: string, changes: Partial<HardwareProfile> = {}): HardwareProfile => ({
  tag,
  description: '',
  firmware: 'baremetal',
  tags: [],
  slots: 1,
  sku: `${tag}-sku`,
  createdAtMs: 1,
  createdBy: 'operator:carol',
  removedAtMs: null,
  ...changes,
})

const tagged = (tags: readonly string[], add: readonly string[], profiles: readonly HardwareProfile[]) => {
  const known = new Map(profiles.map((one) => [one.tag, row(one)]))
  return decideTag({
    node: nodeRow('active', { machine: { ...nothingTagged, tags } }),
    add,
    remove: [],
    profiles: [...tags, ...add].map((tag) => ({ tag, row: known.get(tag) ?? null })),
    by,
    nowMs: noonMs,
  })
}

test('a machine that carries the tag of one hardware profile is not given that of another', () => {
  const refused = tagged(['h100'], ['a100'], [profile('h100'), profile('a100')])
  assert.equal(refused.kind === 'refused' && refused.code, 'PROFILE_TAG_CONFLICT')
  const fine = tagged(['h100'], ['rack-7'], [profile('h100'), profile('a100')])
  assert(fine.kind === 'decided')
  assert.deepEqual(fine.node.machine.tags, ['h100', 'rack-7'])
})

test('a tag relies on whether there is a hardware profile of that name, so that one made meanwhile is a lost race', () => {
  const done = tagged([], ['h100'], [])
  assert(done.kind === 'decided')
  assert.ok(
    done.change.reads.some(
      ({ row: kind, key, version }) => kind === 'hardware-profile' && key === 'h100' && version === 0,
    ),
  )
})

test('a hardware profile is not made for a tag that would give a machine two of them', () => {
  const asked = { tag: 'h100', description: '', firmware: 'x', tags: [], slots: 1, sku: 's' }
  const refused = decideCreateHardwareProfile({ existing: null, asked, conflicting: ['gpu-001'], by, nowMs: noonMs })
  assert.equal(refused.kind === 'refused' && refused.code, 'PROFILE_TAG_CONFLICT')
})

test('one that was removed can be made again, and one that is there cannot', () => {
  const asked = { tag: 'h100', description: '', firmware: 'x', tags: [], slots: 1, sku: 's' }
  const facts = { asked, conflicting: [], by, nowMs: noonMs }
  const again = decideCreateHardwareProfile({ ...facts, existing: row(profile('h100', { removedAtMs: 5 })) })
  assert.equal(again.kind, 'decided')
  const twice = decideCreateHardwareProfile({ ...facts, existing: row(profile('h100')) })
  assert.equal(twice.kind === 'refused' && twice.code, 'HARDWARE_PROFILE_EXISTS')
  const gone = decideRemoveHardwareProfile(row(profile('h100', { removedAtMs: 5 })), by, noonMs)
  assert.equal(gone.kind === 'refused' && gone.code, 'HARDWARE_PROFILE_NOT_FOUND')
})

test('a report changes the slots it names and keeps since when the others are what they are', () => {
  const before: HardwareState = {
    ...nothingTagged,
    slots: [
      { name: 'gpu0', state: 'approved', detail: null, sinceMs: 5 },
      { name: 'gpu1', state: 'approved', detail: null, sinceMs: 5 },
    ],
  }
  const done = decideMachineReport({
    node: nodeRow('active', { machine: before }),
    report: {
      firmware: 'slice-vm',
      readiness: null,
      slots: [
        { name: 'gpu0', state: 'approved', detail: null },
        { name: 'gpu1', state: 'cleanup_blocked', detail: 'the disk was not wiped' },
      ],
      removeSlots: [],
    },
    by,
    nowMs: noonMs,
  })
  assert(done.kind === 'decided')
  assert.deepEqual(
    done.node.machine.slots.map(({ name, state, sinceMs }) => [name, state, sinceMs]),
    [
      ['gpu0', 'approved', 5],
      ['gpu1', 'cleanup_blocked', noonMs],
    ],
  )
})

test('a SKU is derived only from one profile, its firmware, its tags, evidence and approved slots', () => {
  const whole: HardwareState = {
    tags: ['h100', 'nvlink'],
    firmware: 'baremetal',
    readiness: { ready: true, evidence: {}, by: 'operator:maas', atMs: 1 },
    slots: [{ name: 'gpu0', state: 'in_use', detail: null, sinceMs: 1 }],
  }
  const profiles = [profile('h100', { tags: ['nvlink'] })]
  assert.deepEqual(skuOf(whole, profiles), { sku: 'h100-sku', profile: 'h100', why: [] })
  const lacking: readonly [Partial<HardwareState>, RegExp][] = [
    [{ tags: ['h100'] }, /nvlink is missing/],
    [{ firmware: 'slice-vm' }, /firmware is slice-vm/],
    [{ readiness: null }, /no evidence/],
    [{ slots: [] }, /0 of 1 slots/],
    [
      { slots: [...whole.slots, { name: 'gpu1', state: 'cleanup_blocked', detail: null, sinceMs: 1 }] },
      /gpu1: cleanup_blocked/,
    ],
    [{ tags: ['rack-7'] }, /no tag of a hardware profile/],
  ]
  for (const [change, why] of lacking) {
    const { sku, why: said } = skuOf({ ...whole, ...change }, profiles)
    assert.equal(sku, null)
    assert.match(said.join('; '), why)
  }
})

test('whatever tags are asked for in whatever order, no machine ends up under two hardware profiles', () => {
  const profiles = ['p1', 'p2', 'p3'].map((tag) => profile(tag))
  const names = fc.constantFrom('p1', 'p2', 'p3', 'x', 'y')
  fc.assert(
    fc.property(fc.array(fc.record({ add: fc.array(names), remove: fc.array(names) }), { maxLength: 12 }), (steps) => {
      let node = nodeRow('active')
      for (const { add, remove } of steps) {
        const tags = [...new Set([...node.value.machine.tags, ...add])]
        const known = new Map(profiles.map((one) => [one.tag, row(one)]))
        const done = decideTag({
          node,
          add,
          remove,
          profiles: tags.map((tag) => ({ tag, row: known.get(tag) ?? null })),
          by,
          nowMs: noonMs,
        })
        if (done.kind === 'decided') node = { value: done.node, version: node.version + 1 }
        assert.ok(node.value.machine.tags.filter((tag) => known.has(tag)).length <= 1)
      }
    }),
  )
})
