// What nodes have seen of the journal, held against a real store.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { confirmStore } from '#plane/continuity/store-routes.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { openSightingJudge } from '#plane/continuity/judge-sighting.ts'
import { silentLog } from '#platform/log.ts'
import { formatStatement, type StatementOf } from '#wire/core/statement.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { operator } from './authority-setup.ts'
import { codeOf, newCsr, setUpRecovery } from './recovery-setup.ts'

type Seen = StatementOf<'sighting'>

const setUp = async (t: TestContext) => {
  const base = await setUpRecovery(t)
  const { deps, store } = base
  const key = generateKey('p256')
  const node = await base.recoverable('gpu-001', key)
  const [first] = await store.journal.heads()
  assert(first !== undefined)
  const { chain, sequence, hash } = first
  const now: Seen = { domain: 'test.example', lineage: 0, heads: [{ chain, sequence, hash }] }
  const signed = (change: Partial<Seen> = {}): string =>
    formatStatement('sighting', { ...now, ...change }, (bytes) => deps.recovery.signStatement(bytes))
  const further = (by: number): Partial<Seen> => ({ heads: [{ chain, hash, sequence: sequence + by }] })
  const judge = (statement: string, id = 'gpu-001') =>
    deps.sightingJudge.judge(statement, id, { actor: `node:${id}`, source: null, correlation: null })
  const continuity = async () => (await domainSettingsRow(store)).value.continuity
  const doubted = async (): Promise<number> =>
    (await store.journal.read({ after: null, last: null, limit: 1000, node: null, type: 'store.doubted' })).length
  const recover = (sighting: string | null) => base.recoverByKey(key, 'gpu-001', node.counter, newCsr(), { sighting })
  return { ...base, now, signed, further, judge, continuity, doubted, recover, sequence, chain, hash }
}

test('what is in the journal fits, now and later', async (t) => {
  const { signed, judge, clock, continuity, recover } = await setUp(t)
  assert.equal(await judge(signed()), 'fitting')
  assert.equal(codeOf(await recover(signed())), 'issued')
  clock.advance(60_000)
  assert.equal(await judge(signed()), 'fitting')
  assert.equal((await continuity()).doubt, null)
})

test('a missing place is doubted once, whichever agents show it, and the size of the loss is learned without a flood', async (t) => {
  const { signed, further, judge, clock, continuity, doubted, sequence, chain } = await setUp(t)
  assert.equal(await judge(signed(further(10)), 'gpu-001'), 'doubtful')
  const { doubt } = await continuity()
  assert.deepEqual(
    [doubt?.why, doubt?.chain, doubt?.sequence, doubt?.ours],
    ['missing', chain, sequence + 10, sequence],
  )
  for (let more = 11; more < 60; more++) {
    assert.equal(await judge(signed(further(more)), `gpu-${more}`), 'doubtful')
    clock.advance(500)
  }
  const worst = (await continuity()).doubt
  assert.equal(worst?.node, 'gpu-001')
  assert.ok((worst?.sequence ?? 0) >= sequence + 39, `${worst?.sequence}`)
  assert.ok((await doubted()) <= 3)
})

test('another entry in its place, or a chain that is not here, is doubted too', async (t) => {
  const { signed, judge, now, continuity } = await setUp(t)
  const [head] = now.heads
  assert(head !== undefined)
  assert.equal(await judge(signed({ heads: [{ ...head, hash: 'ab'.repeat(32) }] })), 'doubtful')
  assert.equal((await continuity()).doubt?.why, 'other')
  assert.equal(await judge(signed({ heads: [{ ...head, chain: 'elsewhere' }, head] })), 'doubtful')
})

test('a recovering agent brings the doubt with it; nothing is used up, and after the confirmation it gets in', async (t) => {
  const { deps, signed, further, recover, continuity, nodeNow, judge } = await setUp(t)
  const before = await nodeNow('gpu-001')
  const first = await recover(signed(further(10)))
  assert.deepEqual([codeOf(first), first.kind === 'refused' && first.retryAfterMs], ['STORE_IN_DOUBT', 60_000])
  assert.deepEqual(await nodeNow('gpu-001'), before)
  const done = await confirmStore(deps, 'a test', operator)
  assert.deepEqual(done.kind === 'confirmed' && done.lineage, 1)
  // What it saw of the lineage before is not held against the store any more.
  assert.equal(codeOf(await recover(signed(further(10)))), 'issued')
  assert.deepEqual(await continuity(), { lineage: 1, doubt: null })
  assert.equal(await judge(signed({ lineage: 3 })), 'doubtful')
  const again = await confirmStore(deps, 'once more', operator)
  assert.deepEqual(again.kind === 'confirmed' && again.lineage, 4)
})

test('a caller without a credential may bring the truth, and a made-up sighting changes nothing', async (t) => {
  const { signed, further, recover, recoverByKey, continuity, judge } = await setUp(t)
  const [, , signature] = signed().split('.')
  const forged = signed(further(10)).replace(/[^.]+$/, signature ?? '')
  assert.equal(codeOf(await recover(forged)), 'issued')
  assert.equal(await judge(signed({ domain: 'other.example', ...further(10) })), 'foreign')
  assert.equal((await continuity()).doubt, null)
  const stranger = recoverByKey(generateKey('p256'), 'gpu-001', null, newCsr(), { sighting: signed(further(10)) })
  assert.notEqual(codeOf(await stranger), 'issued')
  assert.equal((await continuity()).doubt?.node, 'gpu-001')
})

test('a sighting of a machine that the copy does not know is accepted', async (t) => {
  const { signed, further, recoverByKey, continuity } = await setUp(t)
  const unknown = (sighting: string) => recoverByKey(generateKey('p256'), 'gpu-999', null, newCsr(), { sighting })
  assert.equal(codeOf(await unknown(signed())), 'RECOVERY_UNKNOWN')
  assert.equal((await continuity()).doubt, null)
  assert.equal(codeOf(await unknown(signed(further(10)))), 'RECOVERY_UNKNOWN')
  assert.equal((await continuity()).doubt?.node, 'gpu-999')
})

test('what planes write when they start is not taken for what the copy has kept', async (t) => {
  const { deps, store, clock, signed, further, continuity, recover } = await setUp(t)
  const [newest] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  clock.advance(3_600_000)
  const [sole] = await store.replicas.leased()
  assert(sole !== undefined)
  const firstAtMs = clock.nowMs()
  clock.advance(1000)
  assert.equal(codeOf(await recover(signed())), 'issued')
  clock.advance(1000)
  const leased = [firstAtMs, clock.nowMs()].map((startedAtMs) => ({ ...sole, startedAtMs }))
  const copy = { ...store, replicas: { ...store.replicas, leased: async () => leased } }
  const settings = await settingsNow(store, deps.feed)
  const later = await openSightingJudge({ ...deps, store: copy, log: silentLog }, { recovery: deps.recovery, settings })
  const by = { actor: 'node:gpu-001', source: null, correlation: null } as const
  assert.equal(await later.judge(signed(further(50)), 'gpu-001', by), 'doubtful')
  assert.equal((await continuity()).doubt?.newestEntryMs, newest?.entry.atMs)
})
