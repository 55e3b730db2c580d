import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alertKey, type Alert } from '#domain/alerts/alert.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { Change, Row } from '#domain/core/change.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { systemRandom } from '#platform/random.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openUnresolvedAlerts, raiseAlert, reconcileAlert, reconcileSource } from './reconcile-alerts.ts'

/** Rows of alerts, compared and set. `lose`: so many commits that lose their race. */
const setUp = async ({ lose = 0 } = {}) => {
  const rows = new Map<string, Row<Alert>>()
  const types: string[] = []
  let losses = lose
  const store = {
    get: async (_: 'alert', key: string) => rows.get(key) ?? null,
    alerts: async () => [...rows.values()].filter(({ value }) => value.state.kind !== 'resolved'),
    commit: async ({ writes, entries }: Change) => {
      if (losses-- > 0) return 'lost-race'
      for (const write of writes) {
        if (write.put !== 'alert') continue
        const version = (rows.get(alertKey(write.value))?.version ?? 0) + 1
        rows.set(alertKey(write.value), { value: write.value, version })
      }
      types.push(...entries.map(({ type }) => type))
      return { kind: 'committed', origin: 'here', writes, entries: [] }
    },
  } as unknown as Store
  const feed = openFeed()
  const clock = manualClock(1_000_000)
  const alerts = await openUnresolvedAlerts(store, feed)
  const open = (): string[] => [...alerts.all()].map(({ kind, subject }) => `${kind} ${subject}`).sort()
  return { core: { store, feed, clock, random: systemRandom }, alerts, open, types }
}

const offAt = (replica: string) => wantedAlert('clock_off', replica, { replica, offsetMs: 60_000 })

test('what a source names is open, what it no longer names is resolved, and alerts of other kinds stay', async () => {
  const { core, alerts, open, types } = await setUp()
  await raiseAlert(core, wantedAlert('store_damaged', 'lab', { fault: 'page 3' }))
  await reconcileSource(core, alerts, { kinds: ['clock_off'], wanted: () => [offAt('p1'), offAt('p2')] })
  assert.deepEqual(open(), ['clock_off p1', 'clock_off p2', 'store_damaged lab'])
  await reconcileSource(core, alerts, { kinds: ['clock_off'], wanted: () => [offAt('p2')] })
  assert.deepEqual(open(), ['clock_off p2', 'store_damaged lab'])
  assert.deepEqual(types, ['alert.raised', 'alert.raised', 'alert.raised', 'alert.resolved'])
})

test('a source may keep open what it does not name', async () => {
  const { core, alerts, open } = await setUp()
  for (const replica of ['p1', 'p2']) await raiseAlert(core, offAt(replica))
  const over = (alerts: readonly Alert[]) => alerts.filter(({ subject }) => subject === 'p1')
  await reconcileSource(core, alerts, { kinds: ['clock_off'], wanted: () => [], over })
  assert.deepEqual(open(), ['clock_off p2'])
})

test('no source resolves what an acknowledgement ends, nor what has to be acknowledged first', async () => {
  const { core, alerts, open } = await setUp()
  await raiseAlert(core, wantedAlert('store_put_back', 'lab', { meanwhile: [], file: 'f' }))
  await raiseAlert(core, wantedAlert('rows_differ', 'n1', 'differs'))
  const source = { kinds: ['store_put_back', 'rows_differ'], wanted: () => [] } as const
  await reconcileSource(core, alerts, source)
  assert.deepEqual(open(), ['rows_differ n1', 'store_put_back lab'])
  const acknowledged = [...alerts.all()].map((alert): Alert => ({
    ...alert,
    state: { kind: 'acknowledged', by: 'operator:ada', atMs: 1, note: null },
  }))
  const writes = acknowledged.map((value) => ({ put: 'alert', value }) as const)
  core.feed.publish({ kind: 'committed', origin: 'here', writes, entries: [] })
  await reconcileSource(core, alerts, source)
  assert.deepEqual(open(), ['store_put_back lab'])
})

test('a source that extends what is open is asked only where something is', async () => {
  const { core, alerts } = await setUp()
  const extend = (wanted: ReturnType<typeof offAt>, { reason, sinceMs }: Alert) => ({
    ...wanted,
    reason: `${wanted.reason}; earlier: ${reason}`,
    sinceMs: sinceMs + 1,
  })
  const look = () =>
    reconcileSource(core, alerts, {
      kinds: ['rows_differ'],
      wanted: () => [wantedAlert('rows_differ', 'n1', 'differs')],
      extend,
    })
  await look()
  assert.deepEqual(
    [...alerts.all()].map(({ reason }) => reason),
    ['differs'],
  )
  await look()
  assert.deepEqual(
    [...alerts.all()].map(({ reason }) => reason),
    ['differs; earlier: differs'],
  )
})

test('a race that is lost is looked at and decided again; one that is always lost is left for later', async () => {
  let looks = 0
  const look = () => {
    looks++
    return { wanted: offAt('p1'), reliedOn: [] }
  }
  const once = await setUp({ lose: 1 })
  assert.equal(await reconcileAlert(once.core, offAt('p1'), look), 'settled')
  assert.deepEqual([looks, once.open()], [2, ['clock_off p1']])
  const always = await setUp({ lose: 1000 })
  assert.equal(await reconcileAlert(always.core, offAt('p1'), look), 'busy')
  assert.deepEqual(always.open(), [])
})
