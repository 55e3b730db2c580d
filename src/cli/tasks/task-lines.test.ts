import assert from 'node:assert/strict'
import { test } from 'node:test'
import { taskColumns } from './task-lines.ts'

test('every column can be named as it is offered', () => {
  for (const { name } of taskColumns(0)) assert.match(name, /^[a-z]+(-[a-z]+)*$/)
})
