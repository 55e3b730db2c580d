import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Denial } from '#domain/core/certificate.ts'
import { entry } from '#domain/core/change.ts'
import { refuse } from '#domain/core/refusal.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { alice } from '../../../test/fakes/sample-rows.ts'
import { testPrincipal } from '../../../test/fakes/test-session.ts'
import { openPendingCutOffs } from './pending-cut-offs.ts'

const denial: Denial = {
  ...{ kind: 'epoch', node: 'gpu-001', epoch: 4 },
  ...{ atMs: 0, untilMs: 10, why: 'x', reason: 'unspecified' },
}
const order = { kind: 'revoke', node: 'gpu-001', by: alice, reason: 'stolen' } as const
const change = {
  reads: [],
  writes: [{ put: 'denial', value: denial }],
  entries: [entry(alice, 0, 'host.revoked', {}, {})],
} as const

test('what a slow commit denied early is let in again when it lost its race and the order was refused', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const feed = openFeed()
  const rows = { denials: async () => [], issuers: async () => [], get: async () => null, trouble: () => null }
  let loseRace = (): void => {}
  const commit = () => new Promise((resolve) => (loseRace = () => resolve('lost-race')))
  const store = { ...rows, commit } as unknown as Store
  const denyList = await openDenyList(store, feed)
  const files = { keep: () => 'memory', drop: () => {} } as never
  const core = { store, feed, clock, timers, random: systemRandom, log: silentLog }
  const cutOffs = openPendingCutOffs(core, { denyList, files, epochsHere: () => [] }, new Map())
  const credential = { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'k1' } as const
  const code = () => denyList.refusalOf(testPrincipal('gpu-001', { epoch: 4, credential }))?.code ?? null
  const done = cutOffs.run(order, async (watched) => {
    await watched.commit(change)
    return refuse('NODE_STATE_CONFLICT', 'it is gone')
  })
  assert.equal(code(), null)
  timers.advance(1500)
  assert.equal(code(), 'CLIENT_CERT_DENIED', 'a database that does not answer is waited for, and the machine is not')
  loseRace()
  assert.equal(((await done) as { code: string }).code, 'NODE_STATE_CONFLICT')
  assert.equal(code(), null)
})
