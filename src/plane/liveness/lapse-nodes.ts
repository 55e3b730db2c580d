// The sweep that makes absent nodes inactive, and says so when an enrollment is stuck or certificates run out. Of several
// replicas only the one that leads sweeps: it commits with its fencing token, and a lapse only while no replica holds a channel of
// the node.

import { decideExpired, decideExpiring, decideLapse, decideStuck } from '#domain/node/liveness.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Timers } from '#platform/timers.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { nodePages } from '#plane/core/pages.ts'
import type { Presence } from './presence.ts'
import type { Silence } from './silence.ts'
import type { FlowCore } from '#plane/core/core.ts'

type LapseCore = Pick<FlowCore, 'store' | 'feed' | 'clock'>

const by = { actor: 'system:liveness', source: null, correlation: null }
const pageSize = 200
/** In one sweep; the rest waits for the next, so that a dead switch does not stall the plane. */
const mostAtOnce = 500

export const lapseAbsent = async (
  core: LapseCore,
  presence: Presence,
  silence: Pick<Silence, 'lastElsewhere'>,
): Promise<void> => {
  const domain = await core.store.get('domain', 'domain')
  if (domain === null) return
  const graceMs = domain.value.livenessGraceMs
  const absent = presence.absentFor(graceMs, mostAtOnce)
  if (absent.length === 0) return
  const elsewhere = await silence.lastElsewhere(absent)
  if (elsewhere === 'unknown') return
  const gone = absent.filter((node) => {
    const wasHere = (elsewhere.get(node) ?? Infinity) < graceMs
    // It came and went between two looks.
    if (wasHere) presence.lastHere(node)
    return !wasHere
  })
  await Promise.all(gone.map((node) => lapse(core, presence, node)))
}

const lapse = async ({ store, feed, clock }: LapseCore, presence: Presence, id: NodeId): Promise<void> => {
  const node = await store.get('node', id)
  const grace = await store.get('domain', 'domain')
  const silentMs = presence.silentMs(id)
  if (silentMs === null) return
  if (node === null || grace === null || node.value.membership.kind !== 'active') return presence.forget(id)
  const nowMs = clock.nowMs()
  const verdict = decideLapse({ node, lastPresentMs: nowMs - silentMs, grace, by, nowMs })
  if (verdict.kind === 'not-yet') return
  // A channel is claimed before it opens: one that opens meanwhile wins, whichever replica it is on.
  await commitOnce({ store, feed }, { ...verdict.change, unheld: id })
}

/** Walks the registry in pages, letting other work in between. */
export const raiseOverdue = async (core: LapseCore, timers: Pick<Timers, 'soon'>): Promise<void> => {
  for await (const page of nodePages(core.store, { limit: pageSize, timers })) {
    const domain = await core.store.get('domain', 'domain')
    if (domain === null) return
    for (const node of page) {
      const facts = { node, by, nowMs: core.clock.nowMs() }
      const verdict = [decideStuck({ ...facts, domain }), decideExpired(facts), decideExpiring(facts)].find(
        ({ kind }) => kind === 'decided',
      )
      if (verdict?.kind !== 'decided') continue
      await commitOnce(core, verdict.change)
    }
  }
}
