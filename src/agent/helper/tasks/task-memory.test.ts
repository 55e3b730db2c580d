import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { ownMark } from '#platform/process-mark.ts'
import { testTrust } from '../../../../test/fakes/helped-host.ts'
import { hourMs, taskId } from '../../../../test/fakes/signed-tasks.ts'
import { inScope } from '../../../../test/process/cleanup.ts'
import { tempFolder } from '../../../../test/process/temp-folder.ts'
import { emptyResult, openTaskMemory, type TaskRecord } from './task-memory.ts'

const nowMs = Date.UTC(2027, 0, 1)

const record = (number: number, expiresMs = nowMs + number * hourMs): TaskRecord => ({
  ...{ id: taskId(number), type: 'run', expires_ms: expiresMs, begun_ms: nowMs + number, by: ownMark() },
  ...{ key: 'signer', attempts: 1, boot: null, parameters: null, result: null, forgotten: false },
})

const step = fc.oneof(
  fc.record({ kind: fc.constantFrom('begin', 'end', 'forget'), task: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('sweep'), hours: fc.integer({ min: -10, max: 10_000 }) }),
  fc.record({ kind: fc.constant('restart') }),
)

test('a task is begun once, over restarts and whatever clock its id was removed by', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 24 }), (steps) =>
      inScope(async (scope) => {
        const folder = tempFolder(scope)
        fs.chmodSync(folder, 0o700)
        let memory = openTaskMemory(folder, testTrust, nowMs)
        let forgottenUntilMs = 0
        const begun = new Map<number, number>()
        for (const one of steps) {
          if ('hours' in one)
            memory.sweep(nowMs + one.hours * hourMs, (ms) => (forgottenUntilMs = Math.max(ms, forgottenUntilMs)))
          else if (!('task' in one)) memory = openTaskMemory(folder, testTrust, nowMs)
          else if (one.kind === 'end') memory.end(taskId(one.task), emptyResult)
          else if (one.kind === 'forget') memory.forget(taskId(one.task))
          // As judgeTask has it.
          else if (!memory.isSeen(taskId(one.task)) && record(one.task).expires_ms > forgottenUntilMs) {
            assert.equal(memory.begin(record(one.task), 'as-it-is'), 'begun')
            begun.set(one.task, (begun.get(one.task) ?? 0) + 1)
          }
        }
        assert.ok([...begun.values()].every((times) => times === 1))
        await Promise.resolve()
      }),
    ),
    { numRuns: 60 },
  )
})

test('two helpers on one folder do not both begin a task', (t) => {
  const folder = tempFolder(t)
  const [one, other] = [openTaskMemory(folder, testTrust, nowMs), openTaskMemory(folder, testTrust, nowMs)]
  assert.equal(one.begin(record(1), 'as-it-is'), 'begun')
  assert.equal(other.begin(record(1), 'as-it-is'), 'known')
  assert.deepEqual(other.listed(), [])
})

test('results that the plane has not got are kept, up to 64 of them', (t) => {
  const memory = openTaskMemory(tempFolder(t), testTrust, nowMs)
  for (let number = 1; number <= 64; number++) assert.equal(memory.begin(record(number), 'as-it-is'), 'begun')
  const refused = memory.begin(record(65), 'as-it-is')
  assert.ok(typeof refused !== 'string' && refused.fault === 'HELPER_BUSY')
  memory.end(taskId(1), emptyResult)
  memory.sweep(nowMs + 10_000 * hourMs, () => assert.fail('a result that the plane has not got was removed'))
  assert.ok(memory.isListed(taskId(1)))
  memory.forget(taskId(1))
  assert.equal(memory.isSeen(taskId(1)), true)
  assert.equal(memory.begin(record(65), 'as-it-is'), 'begun')
})

test('what is left of a crash while a record was written is no record', (t) => {
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, `${taskId(1)}.json.${process.pid}.new.new`), '{')
  fs.writeFileSync(path.join(folder, `${taskId(1)}.json.new`), '{')
  const memory = openTaskMemory(folder, testTrust, nowMs)
  assert.equal(memory.isSeen(taskId(1)), false)
  assert.equal(memory.begin(record(1), 'as-it-is'), 'begun')
})

test('a folder that has vanished loses no result, and ends nothing', (t) => {
  const folder = path.join(tempFolder(t), 'tasks')
  fs.mkdirSync(folder, { mode: 0o700 })
  const memory = openTaskMemory(folder, testTrust, nowMs)
  memory.begin(record(1), 'as-it-is')
  fs.rmSync(folder, { recursive: true })
  const result = { ...emptyResult, exit_code: 3 }
  memory.end(taskId(1), result)
  assert.deepEqual(memory.result(taskId(1)), result)
  memory.forget(taskId(1))
  assert.equal(memory.isSeen(taskId(1)), true)
})

test('a damaged record stands for its id for a day, also where the clock was behind when it was found', (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, `${taskId(1)}.json`)
  fs.writeFileSync(file, '{"version":1', { mode: 0o600 })
  fs.utimesSync(file, nowMs / 1000, nowMs / 1000)
  const memory = openTaskMemory(folder, testTrust, 0)
  memory.forget(taskId(1))
  memory.sweep(nowMs + 23 * hourMs, () => assert.fail('it was given up'))
  assert.equal(memory.isSeen(taskId(1)), true)
  let noted = 0
  memory.sweep(nowMs + 25 * hourMs, (ms) => (noted = ms))
  assert.deepEqual([memory.isSeen(taskId(1)), noted], [false, nowMs + 24 * hourMs])
})
