import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { takenAway } from './continuity.ts'

const said = (type: string, about: object): JournalEntry => ({ type, body: {}, ...about }) as unknown as JournalEntry

test('what takes something away is named, and nothing else', () => {
  const entries = [
    said('host.revoked', { node: 'gpu-001' }),
    said('alert.raised', { node: 'gpu-001' }),
    said('operator_key.revoked', { body: { key_id: 'K1' } }),
    said('ca.compromised', { issuer: 'aa' }),
  ]
  assert.deepEqual(takenAway(entries), ['node gpu-001 revoked', 'operator key K1 revoked', 'authority aa withdrawn'])
})
