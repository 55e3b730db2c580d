import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import {
  commonPrefix,
  everyNodeSelected,
  isSelected,
  matchesGlob,
  nameMatcher,
  placeBefore,
  type NodeSelector,
} from './node-selector.ts'

const node = nodeRow('active', {
  assignment: 'blue',
  conditions: [{ name: 'clock_skew', sinceMs: noonMs, reason: 'r', evidence: {} }],
  machine: { ...nothingTagged, tags: ['h100', 'rack:7', 'row=b'] },
}).value

const selects = (selector: Partial<NodeSelector>): boolean => isSelected(node, { ...everyNodeSelected, ...selector })

test('every condition of a selector has to hold', () => {
  assert.ok(selects({}))
  assert.ok(selects({ state: 'active', vcluster: 'blue', condition: 'clock_skew', tags: ['h100'] }))
  assert.ok(!selects({ state: 'active', vcluster: 'green' }))
  assert.ok(!selects({ state: 'revoked' }))
  assert.ok(!selects({ condition: 'disk_full' }))
  assert.ok(!selects({ profile: 'no-such' }))
})

test('none selects the nodes that are in no vCluster', () => {
  assert.ok(!selects({ vcluster: 'none' }))
  assert.ok(isSelected({ ...node, assignment: null }, { ...everyNodeSelected, vcluster: 'none' }))
})

test('a tag is selected by its key or by key and value, and all that are asked for have to be there', () => {
  for (const tags of [['rack'], ['rack=7'], ['rack:7'], ['row=b'], ['row:b'], ['h100', 'rack']])
    assert.ok(selects({ tags }))
  for (const tags of [['rack=8'], ['rac'], ['h1'], ['h100', 'a100']]) assert.ok(!selects({ tags }))
})

test('a name is an id or a glob, and one of them is enough', () => {
  const matches = nameMatcher(['gpu-*', 'hpc-0?', 'login'])
  assert.deepEqual(['gpu-001', 'gpu-', 'hpc-01', 'hpc-010', 'login', 'login2', 'xgpu-1'].map(matches), [
    true,
    true,
    true,
    false,
    true,
    false,
    false,
  ])
  assert.ok(nameMatcher([])('anything'))
})

test('a walk for names starts where the first that can match is, and ends behind the last', () => {
  assert.equal(commonPrefix(['gpu-0*', 'gpu-01', 'gpu-?']), 'gpu-')
  assert.equal(commonPrefix(['gpu-*', '*']), '')
  assert.equal(commonPrefix([]), '')
  assert.equal(placeBefore(''), null)
  for (const id of ['gpu', 'gpu-', 'gpu-001']) assert.ok(id > (placeBefore('gpu') ?? ''))
  for (const id of ['gpt', 'gpt-zzz', 'a', 'gp']) assert.ok(id < (placeBefore('gpu') ?? ''))
})

const sign = fc.constantFrom('a', 'b', '-', '*', '?')

test('a glob matches what the regular expression of the same meaning matches', () => {
  fc.assert(
    fc.property(
      fc.array(sign, { maxLength: 8 }),
      fc.array(fc.constantFrom('a', 'b', '-'), { maxLength: 8 }),
      (signs, letters) => {
        const pattern = signs.map((one) => (one === '*' ? '.*' : one === '?' ? '.' : one)).join('')
        assert.equal(matchesGlob(letters.join(''), signs.join('')), new RegExp(`^${pattern}$`).test(letters.join('')))
      },
    ),
  )
})
