import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingProblem } from './settings-check.ts'
import { taskTypesRule } from './task-types.ts'

const problem = (types: unknown): string | null =>
  settingProblem({ 'tasks.types': taskTypesRule }, 'tasks.types', types)

test('a type that there is not is named, and what may be listed', () => {
  assert.match(problem(['run', 'servce']) ?? '', /^"servce" is no type of task; tasks\.types takes a list of .*service/)
  assert.match(problem(['run', 'run']) ?? '', /^tasks\.types takes .* each once/)
  assert.equal(problem(['run', 'x-drain']), null)
})
