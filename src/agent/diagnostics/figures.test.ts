import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classified, trouble } from '#agent/core/trouble.ts'
import { counted, noFigures, type Counted, type Figures } from './figures.ts'

const after = (...seen: readonly Counted[]): Figures =>
  seen.reduce((figures, what, at) => counted(figures, what, at), noFigures)

test('failures are counted by class, and trouble without a class under the one that says least', () => {
  const full = classified(trouble('disk_full', 'Full.', 'make room'), 'disk_full')
  const { renewal } = after(
    { kind: 'renewal-failed', trouble: full },
    { kind: 'renewal-failed', trouble: trouble('X', 'No.', '') },
    { kind: 'renewal-failed', trouble: full },
  )
  assert.deepEqual(renewal.failures, { disk_full: 2, endpoint_unreachable: 1 })
  assert.deepEqual(renewal.lastFailure, { atMs: 2, trouble: full })
})

test('kinds that come from elsewhere are bounded, and those that are there already go on counting', () => {
  const many = Array.from({ length: 40 }, (_, at): Counted => ({ kind: 'diagnostic-write-failed', errno: `E${at}` }))
  const { diagnosticWriteFailures: counts } = after(...many, { kind: 'diagnostic-write-failed', errno: 'E0' })
  assert.equal(Object.keys(counts).length, 16)
  assert.equal(counts['E0'], 2)
  const dropped = Array.from({ length: 40 }, (_, at): Counted => ({
    kind: 'dropped',
    source: `s${at}`,
    reason: 'r',
    count: 2,
  }))
  assert.equal(after(...dropped).dropped.length, 16)
})

test('a rehearsal is dated when it is counted', () => {
  const { rehearsal } = after(
    { kind: 'exchanged' },
    { kind: 'rehearsed', outcome: 'failed', step: 'proof', why: 'EXPIRED' },
  )
  assert.deepEqual(rehearsal, { atMs: 1, outcome: 'failed', step: 'proof', why: 'EXPIRED' })
})
