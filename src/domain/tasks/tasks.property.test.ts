// Any history of the tasks of one node: what its line counts is what there is, no counter comes twice, and what has ended stays.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Row } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { alice, domainRow, nodeRow, noonMs, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import {
  keyEnded,
  keyOnRecord,
  nodePrincipal,
  signersRow,
  someResult,
  workerOnRecord,
} from '../../../test/fakes/task-rows.ts'
import { decideDispatch } from './dispatch-task.ts'
import { decideCancel, decideOverdue, decideResult } from './end-task.ts'
import { decideQueue } from './queue-task.ts'
import {
  endedAtMs,
  mostDispatched,
  mostDispatchedOfWorkers,
  noAnswer,
  type Lane,
  type Task,
  type TaskLine,
} from './task.ts'

type Step =
  | { readonly do: 'queue' | 'dispatch' | 'cancel' | 'sweep' | 'answer'; readonly at: number; readonly epoch: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'replace' | 'revoke-key' | 'quarantine' }

const touched = fc.record({
  do: fc.constantFrom('queue', 'queue', 'dispatch', 'dispatch', 'cancel', 'sweep', 'answer', 'answer'),
  at: fc.nat(9),
  epoch: fc.constantFrom(4, 4, 4, 5),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: touched },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(3_600_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('replace', 'revoke-key', 'quarantine') }) },
)

/** The store of one node, as far as these decisions see it. */
const world = () => {
  const tasks: Row<Task>[] = []
  let line: Row<TaskLine> | null = null
  let node: Row<Node> = nodeRow('active', { assignment: 'blue' })
  let operator = keyOnRecord()
  const queuerOf = (lane: Lane) => (lane === 'worker' ? workerOnRecord() : operator)
  let nowMs = noonMs
  const counters: number[] = []
  const vcluster = vclusterRow('blue', { tasks: { types: ['service'] } })
  const domain = domainRow()
  const by = alice

  const commit = (verdict: { readonly kind: string }): void => {
    if (verdict.kind !== 'decided') return
    const { change, task } = verdict as Extract<ReturnType<typeof decideQueue>, { kind: 'decided' }>
    const known = tasks.findIndex(({ value }) => value.id === task.id)
    const before = known === -1 ? null : (tasks[known]?.value ?? null)
    if (before !== null && endedAtMs(before) !== null)
      assert('result' in before.state && before.state.result.code === noAnswer, 'what has ended was changed')
    if (task.state.kind === 'dispatched') counters.push(task.state.counter)
    const row = { value: task, version: (tasks[known]?.version ?? 0) + 1 }
    if (known === -1) tasks.push(row)
    else tasks[known] = row
    for (const write of change.writes)
      if (write.put === 'task-line') line = { value: write.value, version: (line?.version ?? 0) + 1 }
  }

  const take = (one: Step): void => {
    if (one.do === 'pass') return void (nowMs += one.ms)
    if (one.do === 'replace') return void (node = { ...node, value: { ...node.value, epoch: 5 } })
    if (one.do === 'revoke-key') return void (operator = keyEnded)
    if (one.do === 'quarantine') return void (node = nodeRow('quarantined', { assignment: 'blue' }))
    if (!('at' in one)) return
    if (one.do === 'queue') {
      const wanted = { id: `task_${tasks.length}`, type: 'service', parameters: {}, lifeMs: 7_200_000 }
      return commit(
        decideQueue({
          ...{ wanted: { ...wanted, rollout: null }, existing: null, node, vcluster },
          ...{ queuer: queuerOf(one.at % 2 === 0 ? 'operator' : 'worker'), applier: null },
          ...{ domain, line, queued: 0, queuedOf: new Map(), correlation: 'story', by, nowMs },
          tally: { of: 'operator:key-1', row: null },
        }),
      )
    }
    const task = tasks[one.at % Math.max(1, tasks.length)]
    if (task === undefined) return
    const facts = { task, line, by, nowMs }
    const queuer = queuerOf(task.value.queuedBy.kind)
    const principal = nodePrincipal({ epoch: one.epoch })
    const reported = { state: 'completed', result: someResult({ exitCode: one.at }) } as const
    if (one.do === 'dispatch')
      commit(decideDispatch({ ...facts, node, vcluster, domain, queuer, principal, signers: signersRow() }))
    if (one.do === 'cancel') commit(decideCancel({ ...facts, why: 'no' }))
    if (one.do === 'sweep') commit(decideOverdue({ ...facts, node, domain, queuer }))
    if (one.do === 'answer') commit(decideResult({ ...facts, node, principal, reported }))
  }

  const check = (): void => {
    const count = (kind: Task['state']['kind']): number => tasks.filter(({ value }) => value.state.kind === kind).length
    assert.deepEqual([line?.value.queued ?? 0, line?.value.dispatched ?? 0], [count('queued'), count('dispatched')])
    assert.ok(count('dispatched') <= mostDispatched)
    const ofWorkers = tasks.filter(({ value }) => value.queuedBy.kind === 'worker')
    const countOfWorkers = (kind: Task['state']['kind']): number =>
      ofWorkers.filter(({ value }) => value.state.kind === kind).length
    assert.equal(line?.value.dispatchedOfWorkers ?? 0, countOfWorkers('dispatched'))
    assert.equal(line?.value.queuedOf['east'] ?? 0, countOfWorkers('queued'))
    assert.ok(countOfWorkers('dispatched') <= mostDispatchedOfWorkers)
    assert.deepEqual(
      counters,
      counters.map((_, at) => at + 1),
    )
    for (const { value } of tasks)
      if ('fingerprint' in value.state) assert.equal(value.state.epoch, value.epoch, 'dispatched in another epoch')
  }
  return { take, check }
}

test('in any history the line of a node counts what there is, counters are gapless and ends are final', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { take, check } = world()
      for (const one of steps) {
        take(one)
        check()
      }
    }),
    { numRuns: process.env['MUSTER_LONG'] === '1' ? 5000 : 300 },
  )
})
