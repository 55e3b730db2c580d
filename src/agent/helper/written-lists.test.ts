import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTrust } from '../../../test/fakes/helped-host.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { openWrittenLists } from './written-lists.ts'

const day = 86_400_000
const now = Date.parse('2026-11-17T12:00:00Z')
const numberAt = (lists: ReturnType<typeof openWrittenLists>, nowMs: number): number | null => {
  const newest = lists.newest(nowMs)
  return 'code' in newest ? assert.fail(newest.code) : (newest.get('aa')?.number ?? null)
}

test('a list that was written while the clock was behind does not let older ones in when the clock is right', (t) => {
  const lists = openWrittenLists(tempFolder(t), testTrust)
  lists.add(new Map(), new Map([['aa', { number: 100, thisUpdateMs: now }]]))
  const behind = now - 30 * day
  assert.equal(numberAt(lists, behind), null)
  lists.add(new Map(), new Map([['aa', { number: 50, thisUpdateMs: behind - 1 }]]))
  assert.equal(numberAt(lists, behind), 50)
  assert.equal(numberAt(lists, now), 100)
})

test('a list from a clock that was ahead keeps right ones out no longer than that clock was ahead', (t) => {
  const lists = openWrittenLists(tempFolder(t), testTrust)
  lists.add(new Map(), new Map([['aa', { number: 900, thisUpdateMs: now + 30 * day }]]))
  for (const number of [101, 102]) lists.add(new Map(), new Map([['aa', { number, thisUpdateMs: now }]]))
  assert.equal(numberAt(lists, now), 102)
  assert.equal(numberAt(lists, now + 31 * day), 900)
})
