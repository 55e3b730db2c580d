// Gets every refusal of the node and recovery listeners, and raises an alert about an identity that is refused again and again, and
// one about machines that no node is registered for (watch-unknown-hardware.ts).
// Counted in memory: only reaching the threshold costs a write, and that once. Refusals of other replicas come through the
// journal, as far as they are journaled: a load balancer spreads the failures of one machine over all replicas.

import {
  failedIdentity,
  failuresToAlert,
  quietToResolveMs,
  repeatedFailures,
  withFailure,
  type RepeatedFailure,
} from '#domain/alerts/alert-failures.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import { readOf } from '#domain/core/change.ts'
import type { EntryBody, JournalEntry } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { RefusalCode } from '#domain/core/refusal-table.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { RefusedCall } from '#plane/core/record-refusal.ts'
import { watchUnknownHardware } from './watch-unknown-hardware.ts'
import { reconcileAlert, reconcileSource, type AlertLook, type UnresolvedAlerts } from './reconcile-alerts.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type FailureWatch = {
  take(call: Pick<RefusedCall, 'refusal' | 'principal' | 'source'>): void
  /** Resolves the alerts about identities that have been quiet for long enough. */
  sweep(leading: FlowCore): Promise<void>
  /** Stops following other replicas. */
  stop(): void
  /** Resolves when what is under way has ended. */
  settled(): Promise<void>
}

/** Identities watched at once; the one that failed longest ago makes room. */
const mostWatched = 10_000

export const watchFailures = (core: Core, alerts: UnresolvedAlerts, domainName: string): FailureWatch => {
  const unknown = watchUnknownHardware(core, alerts, domainName)
  const failures = new Map<NodeId, readonly number[]>()
  const raising = new Map<NodeId, Promise<unknown>>()
  const sinceStartMs = core.clock.monotonicMs()

  const remember = (node: NodeId, times: readonly number[]): void => {
    failures.delete(node)
    failures.set(node, times)
    const [oldest] = failures.keys()
    if (failures.size > mostWatched && oldest !== undefined) failures.delete(oldest)
  }
  const raise = (failure: RepeatedFailure): void => {
    const { node } = failure.identity
    if (raising.has(node) || alerts.has('repeated_failures', node)) return
    const raised = reconcileAlert(core, { kind: 'repeated_failures', subject: node }, () => look(core.store, failure))
      .catch((error: unknown) =>
        core.log.warn({ err: error, node }, 'the alert about repeated failures could not be raised'),
      )
      .finally(() => raising.delete(node))
    raising.set(node, raised)
  }

  const isQuiet = (node: NodeId): boolean => {
    // One from before the start may have failed just then.
    const lastMs = failures.get(node)?.at(-1) ?? sinceStartMs
    return core.clock.monotonicMs() - lastMs >= quietToResolveMs
  }
  const take: FailureWatch['take'] = ({ refusal, principal, source }) => {
    unknown.take(refusal, source)
    const identity = failedIdentity(refusal, principal)
    if (identity === null) return
    const times = withFailure(failures.get(identity.node) ?? [], core.clock.monotonicMs())
    remember(identity.node, times)
    if (times.length >= failuresToAlert) raise({ identity, code: refusal.code, source })
  }
  const stop = core.feed.subscribe('failure watch', ({ origin, entries }) => {
    if (origin === 'here') return
    for (const { entry } of entries) if (entry.type === 'refused') take(asRefused(entry))
  })

  return {
    take,
    stop,
    async sweep(leading) {
      await unknown.sweep(leading)
      await reconcileSource(leading, alerts, {
        kinds: ['repeated_failures'],
        // Raised when they are received.
        wanted: () => [],
        async over(unwanted) {
          const over: Alert[] = []
          // One after the other: there may be thousands of them, and nothing waits for this.
          for (const alert of unwanted)
            if (isQuiet(alert.subject) || (await isGone(core.store, alert.subject))) over.push(alert)
          return over
        },
      })
    },
    async settled() {
      await Promise.all([...raising.values(), unknown.settled()])
    },
  }
}

const asRefused = ({
  node,
  actor,
  source,
  body,
}: JournalEntry): Pick<RefusedCall, 'refusal' | 'principal' | 'source'> => ({
  refusal: { ...refuse(String(body['code']) as RefusalCode), about: { node, actor, ...hardwareIn(body) } },
  principal: null,
  source: source ?? 'unknown',
})

/** As record-refusal.ts has written it. */
const hardwareIn = ({ reported_macs: macs, reported_bmc_serial: serial }: EntryBody): Pick<About, 'hardware'> =>
  Array.isArray(macs)
    ? { hardware: { macs: macs.map(String), bmcSerial: typeof serial === 'string' ? serial : null } }
    : {}

type About = NonNullable<Refusal['about']>

const look = async (store: Pick<Store, 'get'>, failure: RepeatedFailure): Promise<AlertLook> => {
  const { node: id } = failure.identity
  const node = await store.get('node', id)
  const profile = node === null ? null : await store.get('profile', node.value.profile)
  return {
    wanted: node === null || profile === null ? null : repeatedFailures(node.value, profile.value, failure),
    reliedOn: [readOf('node', id, node)],
  }
}

const isGone = async (store: Pick<Store, 'get'>, id: NodeId): Promise<boolean> => {
  const node = await store.get('node', id)
  return node === null || node.value.membership.kind === 'revoked'
}
