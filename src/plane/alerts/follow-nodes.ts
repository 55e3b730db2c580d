// Alerts follow the conditions of nodes, and their quarantine. Every commit that touches a node is looked at, and at start
// every node, so a crash between a condition and its alert loses nothing and raises nothing twice: the alert's row is
// compared and set.
//
// Of several replicas exactly one may do this. Two would not raise anything twice either, but each would lose races to
// the other all day.

import { alertsOfNode, nodeAlertKinds } from '#domain/alerts/alert-wanted.ts'
import { readOf } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { nodePages } from '#plane/core/pages.ts'
import { reconcileAlert, type UnresolvedAlerts } from './reconcile-alerts.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type NodeFollower = {
  /** Looks at every node once. */
  walk(): Promise<void>
  /** Tries again what could not be settled when it happened. */
  again(): Promise<void>
  /** Follows nothing from now on; resolves when what is under way has ended. */
  stop(): Promise<void>
}

const pageSize = 200
/** Settled side by side, so that they share a commit group. */
const atOnce = 32

export const followNodes = (core: Core, alerts: UnresolvedAlerts): NodeFollower => {
  const unsettled = new Set<NodeId>()
  let working: Promise<void> | null = null
  let stopped = false

  const concerns = (node: Node): boolean =>
    alertsOfNode(node).length > 0 || nodeAlertKinds.some((kind) => alerts.has(kind, node.id))

  const settle = async (id: NodeId): Promise<void> => {
    // Taken out first: a commit that comes while this one is looked at puts it back.
    unsettled.delete(id)
    try {
      if ((await reconcileNode(core, alerts, id)) === 'busy') unsettled.add(id)
    } catch (error) {
      unsettled.add(id)
      throw error
    }
  }
  const settleAll = async (): Promise<void> => {
    // The commits of this loop concern no alert, so it ends.
    for (let next = first(unsettled); next.length > 0 && !stopped; next = first(unsettled)) {
      await Promise.all(next.map(settle))
    }
  }
  const again = (): Promise<void> => {
    working ??= settleAll()
      .catch((error: unknown) => core.log.warn({ err: error }, 'alerts could not be settled; they are tried again'))
      .finally(() => (working = null))
    return working
  }

  const unsubscribe = core.feed.subscribe('node alerts', ({ writes }) => {
    const before = unsettled.size
    for (const write of writes) if (write.put === 'node' && concerns(write.value)) unsettled.add(write.value.id)
    if (unsettled.size > before) core.timers.soon(() => void (stopped || again()))
  })

  return {
    again,
    async walk() {
      for await (const page of nodePages(core.store, { limit: pageSize, timers: core.timers })) {
        if (stopped) return
        for (const { value } of page) if (concerns(value)) unsettled.add(value.id)
        await again()
      }
    },
    async stop() {
      stopped = true
      unsubscribe()
      await working
    },
  }
}

/** All alerts that follow one node. */
export const reconcileNode = async (
  core: FlowCore,
  alerts: UnresolvedAlerts,
  id: NodeId,
): Promise<'settled' | 'busy'> => {
  const node = await core.store.get('node', id)
  if (node === null) return 'settled'
  const wanted = new Set(alertsOfNode(node.value).map(({ kind }) => kind))
  const concerned = nodeAlertKinds.filter((kind) => wanted.has(kind) || alerts.has(kind, id))
  const outcomes = await Promise.all(
    concerned.map((kind) =>
      reconcileAlert(core, { kind, subject: id }, async () => {
        const now = await core.store.get('node', id)
        return {
          wanted: (now === null ? [] : alertsOfNode(now.value)).find((one) => one.kind === kind) ?? null,
          reliedOn: [readOf('node', id, now)],
        }
      }),
    ),
  )
  return outcomes.includes('busy') ? 'busy' : 'settled'
}

const first = (ids: ReadonlySet<NodeId>): NodeId[] => [...ids.values().take(atOnce)]
