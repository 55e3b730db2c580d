import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import { alice } from '../../../test/fakes/sample-rows.ts'
import { entry } from '#domain/core/decision.ts'
import { commitIssued, type CommitIssuedDeps } from './commit-issued.ts'

const change: Change = { reads: [], writes: [], entries: [entry(alice, 0, 'node.renewed', {}, {})] }

test('what hands a certificate out relies on the row of its signer as this plane knows it; a newer one is looked at', async () => {
  const seen: Change[] = []
  let looks = 0
  const deps = {
    store: {
      commit: async (asked: Change) => {
        seen.push(asked)
        return 'lost-race'
      },
      get: async () => ({ version: 8 }),
    },
    issuer: {
      rowRead: (key: string) => ({ row: 'issuer', key, version: 7 }),
      lookAgain: async () => void looks++,
      withdrawnIssuers: () => ['withdrawn'],
    },
  } as unknown as CommitIssuedDeps
  assert.equal(await commitIssued(deps, { issuer: 'ca1' }, change), 'lost-race')
  assert.deepEqual(seen[0]?.reads, [{ row: 'issuer', key: 'ca1', version: 7 }])
  assert.equal(looks, 1)
  assert.equal(await commitIssued(deps, { issuer: 'withdrawn' }, change), 'lost-race')
  assert.equal(seen.length, 1, 'what a withdrawn authority has signed is not even tried')
})
