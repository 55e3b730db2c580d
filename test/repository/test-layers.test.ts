import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test } from 'node:test'
import { testFilesReached } from '../../scripts/reached-files.ts'
import { filesBelow, root } from '../../scripts/repository.ts'
import { layerOf } from '../../scripts/test-layers.ts'

const tests = ['src', 'test']
  .flatMap((folder) => filesBelow(path.join(root, folder), root))
  .filter((file) => file.endsWith('.test.ts') && file !== 'test/repository/test-layers.test.ts')

const starters = ['test/process/child.ts', 'test/process/run-muster.ts', 'test/process/patroni-cluster.ts']

test('unit tests and flows start no plane, no agent and no command', () => {
  const wrong = tests
    .filter((file) => layerOf(file) !== 'system')
    .filter((file) => starters.some((starter) => testFilesReached(root, file).has(starter)))
  assert.deepEqual(wrong, [])
})

test('unit tests need no other program', () => {
  const wrong = tests
    .filter((file) => layerOf(file) === 'unit')
    .filter((file) => testFilesReached(root, file).has('test/peers/peer.ts'))
  assert.deepEqual(wrong, [])
})

test('every test in src/ is a unit test, and every folder of test/ has a layer', () => {
  assert.equal(layerOf('src/domain/core/change.test.ts'), 'unit')
  assert.equal(layerOf('test/flows/enroll-node.test.ts'), 'flows')
  assert.equal(layerOf('test/system/agent-with-plane.test.ts'), 'system')
  // Nothing lies beside the folders, where its layer would be a guess.
  assert.deepEqual(
    tests.filter((file) => /^test\/[^/]+$/.test(file)),
    [],
  )
})
