import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { putBackAlert, takenAway } from './revoked-meanwhile.ts'

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

test('the alert names some of it, says when nobody wrote it down, and is less urgent when there was nothing', () => {
  const seven = Array.from({ length: 7 }, (_, at) => `node n${at} revoked`)
  assert.match(
    putBackAlert('a', seven, 'f').reason,
    /: node n0 revoked; .*node n4 revoked; and 2 more\. Revoke it again\. /,
  )
  assert.match(putBackAlert('a', null, 'f').reason, /is not in it: revoke it again/)
  const nothing = putBackAlert('a', [], 'f')
  assert.deepEqual([nothing.severity, /nothing on record/.test(nothing.reason)], ['warning', true])
})
