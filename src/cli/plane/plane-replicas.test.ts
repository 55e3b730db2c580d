import assert from 'node:assert/strict'
import { test } from 'node:test'
import { restartAfterMs } from './plane-replicas.ts'

test('a process that keeps ending is started again ever later, and never given up', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 5000].map(restartAfterMs),
    [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000],
  )
})
