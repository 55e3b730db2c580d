// What `npm run features` counts, and the list of features in docs/ARCHITECTURE.md.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { features } from '../../scripts/boundary-rules.ts'
import { countedEdges, foldersOf, mostEdges, mostFolders } from '../../scripts/features.ts'
import { root } from '../../scripts/repository.ts'

test('the bound on edges between features is the number there is: one more, or one fewer, is a line in a diff', () => {
  assert.equal(countedEdges(), mostEdges)
})

test('no feature lies in more folders than the bound, folders of the helper included', () => {
  const counts = new Map(features.map((feature) => [feature, foldersOf(feature).size]))
  assert.equal(Math.max(...counts.values()), mostFolders)
  assert.ok(foldersOf('tasks').has('agent/helper/tasks'))
  assert.ok(foldersOf('fleet').has('agent/helper/overlay'))
})

test('the list of features in ARCHITECTURE.md is that of the boundaries', () => {
  const text = fs.readFileSync(path.join(root, 'docs/ARCHITECTURE.md'), 'utf8')
  const [sentence = ''] = /^The features are [^]*?\n\n/m.exec(text) ?? []
  // What a feature is about stands in parentheses, and may be code.
  const listed = [...sentence.replace(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  assert.deepEqual(listed, [...features])
})
