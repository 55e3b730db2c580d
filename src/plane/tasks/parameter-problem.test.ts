import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSame } from '#domain/tasks/queue-task.ts'
import { parameterProblem } from './parameter-problem.ts'

/** So many objects and lists in one another, the outermost included. */
const nested = (levels: number): Record<string, unknown> =>
  JSON.parse(`{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`) as Record<string, unknown>

test('parameters of a type of the host are as deep as everything that goes through them can go', () => {
  assert.equal(parameterProblem('x-led', nested(32)), null)
  assert.equal(isSame(nested(32), nested(32)), true)
  for (const levels of [33, 8000]) assert.match(parameterProblem('x-led', nested(levels))?.why ?? '', /at most 32 deep/)
})

test('parameters of the types that ship fit their schema', () => {
  assert.equal(parameterProblem('service', { name: 'dcgm', action: 'restart' }), null)
  assert.deepEqual(parameterProblem('service', { name: 'dcgm', action: 'eat' })?.path, 'parameters.action')
})
