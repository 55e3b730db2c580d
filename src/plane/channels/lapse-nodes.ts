// The sweep that makes absent nodes inactive, and says so when an enrollment is stuck or certificates run out.

import { decideExpired, decideExpiring, decideLapse, decideStuck } from '#domain/liveness.ts'
import type { NodeId } from '#domain/node.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import type { Feed } from '#plane/feed/feed.ts'
import type { Store } from '#plane/store/store.ts'
import type { Presence } from './presence.ts'

export type LapseDeps = {
  readonly store: Store
  readonly feed: Feed
  readonly clock: Clock
  readonly timers: Pick<Timers, 'soon'>
  readonly presence: Presence
}

const by = { actor: 'system:liveness', source: null, correlation: null }
const pageSize = 200
/** In one sweep; the rest waits for the next, so that a dead switch does not stall the plane. */
const mostAtOnce = 500

/** At start: everybody who was active is given the whole grace again. */
export const awaitEverybody = async ({ store, presence }: LapseDeps): Promise<void> => {
  for (let after: NodeId | null = null; ;) {
    const page = await store.nodes({ membership: 'active', profile: null, after, limit: pageSize })
    for (const { value } of page) presence.lastHere(value.id)
    after = page.at(-1)?.value.id ?? null
    if (page.length < pageSize || after === null) return
  }
}

export const lapseAbsent = async (deps: LapseDeps): Promise<void> => {
  const grace = await deps.store.get('domain', 'domain')
  if (grace === null) return
  const absent = deps.presence.absentFor(grace.value.livenessGraceMs, mostAtOnce)
  await Promise.all(absent.map((node) => lapse(deps, node)))
}

const lapse = async ({ store, feed, clock, presence }: LapseDeps, id: NodeId): Promise<void> => {
  const node = await store.get('node', id)
  const grace = await store.get('domain', 'domain')
  // From here to the commit is one turn: a channel that opened before is seen now, one that opens later waits for it.
  const silentMs = presence.silentMs(id)
  if (silentMs === null) return
  if (node === null || grace === null || node.value.membership.kind !== 'active') return presence.forget(id)
  const nowMs = clock.nowMs()
  const verdict = decideLapse({ node, lastPresentMs: nowMs - silentMs, grace, by, nowMs })
  if (verdict.kind === 'not-yet') return
  await presence.leave(id, async () => {
    const outcome = await store.commit(verdict.change)
    if (outcome !== 'lost-race') feed.publish(outcome)
  })
}

/** Walks the registry in pages, letting other work in between. */
export const raiseOverdue = async (deps: LapseDeps): Promise<void> => {
  for (let after: NodeId | null = null; ;) {
    const domain = await deps.store.get('domain', 'domain')
    const page = await deps.store.nodes({ membership: null, profile: null, after, limit: pageSize })
    if (domain === null) return
    for (const node of page) {
      const facts = { node, by, nowMs: deps.clock.nowMs() }
      const verdict = [decideStuck({ ...facts, domain }), decideExpired(facts), decideExpiring(facts)].find(
        ({ kind }) => kind === 'decided',
      )
      if (verdict?.kind !== 'decided') continue
      const outcome = await deps.store.commit(verdict.change)
      if (outcome !== 'lost-race') deps.feed.publish(outcome)
    }
    after = page.at(-1)?.value.id ?? null
    if (page.length < pageSize || after === null) return
    await new Promise<void>((resolve) => deps.timers.soon(resolve))
  }
}
