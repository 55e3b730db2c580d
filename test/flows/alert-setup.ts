// Alerts on a real store: nodes whose conditions a test raises and clears, and what follows of it.

import type { TestContext } from 'node:test'
import type { Alert } from '#domain/alerts/alert.ts'
import { decideClear, decideRaise } from '#domain/core/conditions.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import type { ConditionName, Node } from '#domain/core/node.ts'
import { openFeed, type Feed } from '#plane/core/feed.ts'
import { openUnresolvedAlerts, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import type { Core } from '#plane/core/core.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { newNode } from '../store/harness.ts'
import { setUp, type Setup } from './authority-setup.ts'

export const by = { actor: 'system:test', source: null, correlation: null }

export type AlertSetup = Setup & {
  /** As after a start of the plane: a feed nobody listens to yet, and what stands read from the store. */
  start(): Promise<Core & { readonly alerts: UnresolvedAlerts; readonly timers: ReturnType<typeof manualTimers> }>
  register(id: string, more?: Partial<Node>): Promise<void>
  raise(feed: Feed | null, id: string, name: ConditionName, reason?: string): Promise<void>
  clear(feed: Feed | null, id: string, name: ConditionName): Promise<void>
  unresolved(): Promise<readonly Alert[]>
  count(type: EntryType): Promise<number>
}

export const setUpAlerts = async (t: TestContext): Promise<AlertSetup> => {
  const base = await setUp(t)
  const { store, clock } = base
  const change = async (
    feed: Feed | null,
    id: string,
    decide: typeof decideRaise,
    name: ConditionName,
    reason: string,
  ) => {
    const node = await store.get('node', id)
    if (node === null) throw new Error(`no node ${id}`)
    const verdict = decide({ node, name, reason, evidence: {}, by, nowMs: clock.nowMs() })
    if (verdict.kind === 'unchanged') throw new Error(`${name} of ${id} is so already`)
    const outcome = await store.commit(verdict.change)
    if (outcome === 'lost-race') throw new Error('somebody else was there')
    // Null: the plane died between the commit and what follows it.
    feed?.publish(outcome)
  }
  return {
    ...base,
    async start() {
      const feed = openFeed()
      const timers = manualTimers(clock)
      const alerts = await openUnresolvedAlerts(store, feed)
      return { store, feed, clock, timers, random: systemRandom, log: silentLog, alerts }
    },
    async register(id, more = {}) {
      await store.commit(newNode(id, more))
    },
    raise: (feed, id, name, reason = 'because') => change(feed, id, decideRaise, name, reason),
    clear: (feed, id, name) => change(feed, id, decideClear, name, ''),
    unresolved: async () =>
      (await store.alerts({ unresolvedOnly: true, after: null, limit: 1000 })).map(({ value }) => value),
    count: async (type) => (await base.journal(type)).length,
  }
}
