// What `npm run walk` says of one operation: docs/ARCHITECTURE.md and the decision about folders quote its figures.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operations, runOperation, walkOf } from '../../scripts/walked-files.ts'

test('a walk has the files that a plane ran through from its route to the decision and the signature', async (t) => {
  const { from } = operations.enroll
  const ran = await runOperation(t, operations.enroll, { settleMs: 0, quietMs: 0 })
  const { followed, mechanics } = walkOf(ran, from)
  assert.equal(followed[0], from)
  for (const file of [
    'src/plane/enrollment/enroll-node.ts',
    'src/domain/enrollment/enrollment.ts',
    'src/plane/authority/ca-signer.ts',
  ])
    assert.ok(followed.includes(file), `${file} is not among ${followed.join(', ')}`)
  assert.ok(ran.get('src/domain/enrollment/enrollment.ts')?.includes('decideEnroll'))
  assert.ok(mechanics.includes('src/plane/core/feed.ts'))
})

test('a file of the authority counts where it was called, and not where it only received the commit', () => {
  const { from } = operations.revoke
  const ran = new Map([
    [from, ['revoke']],
    ['src/plane/authority/ca-signer.ts', ['signLeaf']],
    ['src/plane/authority/workers-authority.ts', ['']],
    ['src/plane/alerts/watch-failures.ts', ['']],
    ['src/plane/core/feed.ts', ['publish']],
  ])
  assert.deepEqual(walkOf(ran, from), {
    followed: [from, 'src/plane/authority/ca-signer.ts'],
    elsewhere: ['src/plane/alerts/watch-failures.ts', 'src/plane/authority/workers-authority.ts'],
    mechanics: ['src/plane/core/feed.ts'],
  })
})
