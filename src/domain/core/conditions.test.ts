import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideClear, decideRaise, withCondition, withoutConditions } from './conditions.ts'
import { entryTypesOf, expectDecided, readsOf } from '../../../test/fakes/expect-decision.ts'
import type { Condition } from './node.ts'
import { alice, minute, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'

const full: Condition = { name: 'disk_full', sinceMs: noonMs, reason: 'no room', evidence: { mount: '/' } }
const raise = { name: 'disk_full', reason: 'no room', evidence: { mount: '/', free: 0 }, by: alice } as const

test('a condition keeps its first since, and there is one of each name', () => {
  const twice = withCondition(withCondition([], full), { ...full, sinceMs: noonMs + 1, reason: 'again' })
  assert.deepEqual(twice, [full])
  assert.deepEqual(withoutConditions(twice, ['disk_full', 'clock_skew']), [])
})

test('raising a condition is journaled with its evidence', () => {
  const verdict = expectDecided(decideRaise({ ...raise, node: nodeRow('active'), nowMs: noonMs }))
  assert.deepEqual(verdict.node.conditions, [{ ...full, evidence: { mount: '/', free: 0 } }])
  assert.deepEqual(entryTypesOf(verdict), ['node.condition_raised'])
  assert.deepEqual(verdict.change.entries[0].body, {
    condition: 'disk_full',
    reason: 'no room',
    evidence: ['mount=/', 'free=0'],
  })
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@7'])
})

test('raising what stands already writes nothing, so a node cannot fill the journal', () => {
  const node = nodeRow('active', { conditions: [full] })
  assert.deepEqual(decideRaise({ ...raise, node, nowMs: noonMs }), { kind: 'unchanged' })
  assert.deepEqual(decideRaise({ ...raise, node: nodeRow('revoked'), nowMs: noonMs }), { kind: 'unchanged' })
})

test('clearing is journaled with how long it lasted; clearing nothing writes nothing', () => {
  const node = nodeRow('active', { conditions: [full] })
  const verdict = expectDecided(decideClear({ node, name: 'disk_full', by: alice, nowMs: noonMs + minute }))
  assert.deepEqual(verdict.node.conditions, [])
  assert.deepEqual(verdict.change.entries[0].body, { condition: 'disk_full', lasted_ms: minute })
  assert.deepEqual(decideClear({ node, name: 'clock_skew', by: alice, nowMs: noonMs }), { kind: 'unchanged' })
})

test('evidence from a node is bounded in number and length, and cannot forge lines', () => {
  const evidence = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`fact-${i}\n`, 'x'.repeat(10_000)]))
  const verdict = expectDecided(
    decideRaise({ ...raise, reason: 'a\nb'.repeat(1000), evidence, node: nodeRow('active'), nowMs: noonMs }),
  )
  const text = JSON.stringify([verdict.node.conditions, verdict.change.entries])
  assert.ok(text.length < 4096, `${text.length}`)
  assert.ok(!text.includes('\\n'))
})
