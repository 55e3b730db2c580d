import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Standing } from '#plane/store/contract/replicas.ts'
import { judgeStanding, type Callers } from './standing-gate.ts'

const behind: Standing = { kind: 'behind', why: 'the feed is 11 s old' }
const expired: Standing = { kind: 'expired', why: 'the lease ended 2 s ago' }

const code = (standing: Standing, callers: Callers, method: string, always?: true): string | null =>
  judgeStanding(standing, callers, always === undefined ? { method } : { method, always })?.code ?? null

test('a replica that serves answers everything', () => {
  assert.equal(code({ kind: 'serving' }, 'machines', 'POST'), null)
})

test('a replica that is behind decides nothing and answers no machine; operators may look', () => {
  assert.equal(code(behind, 'machines', 'POST'), 'REPLICA_BEHIND')
  assert.equal(code(behind, 'machines', 'GET'), 'REPLICA_BEHIND')
  assert.equal(code(behind, 'operators', 'POST'), 'REPLICA_BEHIND')
  assert.equal(code(behind, 'operators', 'PATCH'), 'REPLICA_BEHIND')
  assert.equal(code(behind, 'operators', 'GET'), null)
})

test('a replica without a lease says nothing but how it is', () => {
  assert.equal(code(expired, 'operators', 'GET'), 'REPLICA_BEHIND')
  assert.equal(code(expired, 'operators', 'GET', true), null)
})

test('a refused caller gets the reason and a retry time', () => {
  const refusal = judgeStanding(behind, 'machines', { method: 'POST' })
  assert.equal(refusal?.detail, 'the feed is 11 s old')
  assert.ok((refusal?.retryAfterMs ?? 0) > 0)
})
