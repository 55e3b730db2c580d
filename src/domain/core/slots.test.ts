import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noonMs, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { servesUntilMs } from './slots.ts'

test('a certificate serves until it expires, a replaced one until its connections are drained, others not at all', () => {
  const held = slots({
    current: slot('c', { notAfterMs: noonMs + 3 }),
    pending: slot('p', { notAfterMs: noonMs + 4 }),
    retired: { slot: slot('r', { notAfterMs: noonMs + 2 }), untilMs: noonMs + 1 },
  })
  const until = (serial: string): number | null => servesUntilMs(held, 'ca1', serial)
  assert.deepEqual([until('c'), until('p'), until('r'), until('x')], [noonMs + 3, noonMs + 4, noonMs + 1, null])
  assert.equal(servesUntilMs(held, 'another-ca', 'c'), null)
})
