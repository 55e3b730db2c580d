import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import {
  claimed,
  keyEnded,
  keyOnRecord,
  lineRow,
  nodePrincipal,
  someResult,
  taskRow,
} from '../../../test/fakes/task-rows.ts'
import { decideCancel, decideOverdue, decideResult, type OverdueFacts, type ResultFacts } from './end-task.ts'
import { emptyLine, noResult, resultAwaitedMs, type TaskEnded, type TaskState } from './task.ts'

const dispatched = taskRow({ state: claimed() })
const underWay = lineRow({ queued: 0, dispatched: 1 })

const result = (changes: Partial<ResultFacts> = {}) =>
  decideResult({
    ...{ task: dispatched, line: underWay, principal: nodePrincipal(), node: nodeRow('active') },
    ...{ reported: { state: 'completed', result: someResult() }, by: alice, nowMs: noonMs, ...changes },
  })

const endedAs = (kind: TaskEnded['kind'], of = someResult()): TaskState => ({
  ...{ ...claimed(), kind, endedAtMs: noonMs, result: of },
})

test('a result ends the task it is for, once', () => {
  const verdict = expectDecided(result())
  assert.deepEqual(verdict.task.state, endedAs('completed'))
  assert.deepEqual(entryTypesOf(verdict), ['task.completed'])
  assert.deepEqual(writesOf(verdict, 'task-line'), [{ ...emptyLine('gpu-001'), counter: 6, queued: 0, dispatched: 0 }])
  const ended = taskRow({ state: endedAs('completed') })
  assert.deepEqual(result({ task: ended }), { kind: 'unchanged', task: ended.value })
  const other = { state: 'completed', result: someResult({ exitCode: 1 }) } as const
  expectRefused(result({ task: ended, reported: other }), 'TASK_ALREADY_ENDED')
  expectRefused(result({ task: ended, reported: { ...other, state: 'failed' } }), 'TASK_ALREADY_ENDED')
})

test('T30: a result of another epoch, or of another node, counts for nothing', () => {
  expectRefused(result({ principal: nodePrincipal({ epoch: 5 }) }), 'TASK_NOT_YOURS', /another epoch/)
  expectRefused(result({ principal: nodePrincipal({ id: 'gpu-002' }) }), 'TASK_NOT_FOUND')
  const ended = taskRow({ state: endedAs('completed') })
  expectRefused(result({ task: ended, principal: nodePrincipal({ epoch: 3 }) }), 'TASK_NOT_YOURS')
  expectRefused(result({ task: taskRow() }), 'TASK_NOT_YOURS', /has not been dispatched/)
})

test('T30: an epoch that is over finishes nothing, and whatever ends it is relied on', () => {
  assert.ok(readsOf(expectDecided(result())).includes('node/gpu-001@7'))
  const over = (node: Row<Node>) => expectRefused(result({ node }), 'TASK_NOT_YOURS', /its node/)
  for (const kind of ['revoked', 'quarantined'] as const) over(nodeRow(kind))
  over(nodeRow('active', { epoch: 5 }))
  const givenUp = taskRow({ state: endedAs('unknown', noResult('it had no result')) })
  expectRefused(result({ task: givenUp, node: nodeRow('quarantined') }), 'TASK_NOT_YOURS', /quarantined/)
  const ended = taskRow({ state: endedAs('completed') })
  assert.equal(result({ task: ended, node: nodeRow('quarantined') }).kind, 'unchanged', 'it was taken before')
})

test('a host that refused a task has failed it, and the journal says that it was refused', () => {
  const refused = {
    state: 'refused',
    result: someResult({ code: 'TYPE_NOT_ALLOWED', exitCode: null, output: null }),
  } as const
  const verdict = expectDecided(result({ reported: refused }))
  assert.deepEqual([verdict.task.state.kind, entryTypesOf(verdict)], ['failed', ['task.refused']])
  assert.equal(verdict.change.entries[0]?.body['code'], 'TYPE_NOT_ALLOWED')
})

test('a result that comes after the plane has given up is the truth; what the host itself called unknown stays', () => {
  const givenUp = taskRow({ state: endedAs('unknown', noResult('it had no result')) })
  const late = expectDecided(result({ task: givenUp, line: lineRow({ dispatched: 0 }) }))
  assert.equal(late.task.state.kind, 'completed')
  assert.deepEqual(writesOf(late, 'task-line'), [{ ...emptyLine('gpu-001'), counter: 6, queued: 1, dispatched: 0 }])
  const interrupted = taskRow({ state: endedAs('unknown', someResult({ code: 'INTERRUPTED' })) })
  expectRefused(result({ task: interrupted }), 'TASK_ALREADY_ENDED')
})

test('what waits is cancelled, what was sent is not called back, and what has ended stays', () => {
  const cancel = (state: TaskState) =>
    decideCancel({ task: taskRow({ state }), line: lineRow(), why: 'wrong node', by: alice, nowMs: noonMs })
  const verdict = expectDecided(cancel({ kind: 'queued' }))
  assert.deepEqual(verdict.task.state, { kind: 'cancelled', atMs: noonMs, by: 'operator:alice', why: 'wrong node' })
  assert.deepEqual(writesOf(verdict, 'task-line'), [{ ...emptyLine('gpu-001'), counter: 6, queued: 0, dispatched: 0 }])
  expectRefused(cancel(claimed()), 'TASK_DISPATCHED')
  expectRefused(cancel(endedAs('failed')), 'TASK_ALREADY_ENDED')
  expectRefused(cancel({ kind: 'expired', atMs: noonMs }), 'TASK_ALREADY_ENDED')
  assert.equal(cancel(verdict.task.state).kind, 'unchanged')
  expectRefused(result({ task: taskRow({ state: verdict.task.state }) }), 'TASK_ALREADY_ENDED')
})

const overdue = (changes: Partial<OverdueFacts> = {}): string => {
  const verdict = decideOverdue({
    ...{ task: taskRow(), line: lineRow(), node: nodeRow('active'), domain: domainRow(), queuer: keyOnRecord() },
    ...{ by: { actor: 'system:tasks', source: null, correlation: null }, nowMs: noonMs, ...changes },
  })
  if (verdict.kind === 'unchanged') return 'unchanged'
  const { state } = verdict.task
  if (state.kind === 'cancelled') return `cancelled: ${state.why}`
  return state.kind === 'unknown' ? `unknown: ${state.result.code}, ${state.result.detail}` : state.kind
}

test('what waits ends with its time, with the epoch of its node, and with the key that queued it', () => {
  assert.equal(overdue(), 'unchanged')
  assert.equal(overdue({ nowMs: taskRow().value.expiresAtMs }), 'expired')
  assert.equal(overdue({ node: nodeRow('revoked') }), 'cancelled: its node was revoked')
  assert.equal(overdue({ node: nodeRow('quarantined') }), 'cancelled: its node was quarantined')
  assert.equal(overdue({ node: nodeRow('active', { epoch: 5 }) }), 'cancelled: its node is in epoch 5 by now')
  assert.equal(overdue({ node: null }), 'cancelled: its node was purged')
  assert.match(overdue({ queuer: keyEnded }), /^cancelled: the operator key .* was revoked/)
})

test('what was sent is unknown when no result can come any more, and outlives the key that queued it', () => {
  const sent = { task: dispatched, line: underWay }
  const untilMs = dispatched.value.expiresAtMs + domainRow().value.clockToleranceMs + resultAwaitedMs
  assert.equal(overdue({ ...sent, queuer: keyEnded }), 'unchanged')
  assert.equal(overdue({ ...sent, nowMs: untilMs - 1 }), 'unchanged')
  assert.match(overdue({ ...sent, nowMs: untilMs }), /^unknown: NO_ANSWER/)
  assert.match(overdue({ ...sent, node: nodeRow('quarantined') }), /^unknown: NO_ANSWER, .*was quarantined/)
  assert.equal(overdue({ task: taskRow({ state: endedAs('completed') }), nowMs: untilMs * 2 }), 'unchanged')
})
