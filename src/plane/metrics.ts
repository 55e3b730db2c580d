// What Prometheus scrapes. Counters hear of commits through the feed; gauges look when they are asked.

import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { EntryType } from '#domain/journal-entry.ts'
import { membershipKinds } from '#domain/node.ts'
import type { RefusalCode } from '#domain/refusal.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { Feed } from './feed/feed.ts'
import type { OpenChannels } from './flows/open-channels.ts'
import type { Authority } from './issuer/authority.ts'
import type { Store } from './store/store.ts'

export type MetricsDeps = {
  readonly store: Pick<Store, 'countNodes'>
  readonly feed: Feed
  readonly channels: Pick<OpenChannels, 'count'>
  readonly authority: Pick<Authority, 'view'>
  /** Callers inside the admission queue of the node plane. */
  readonly admissionQueue: () => number
}

export type Metrics = {
  /** Every refusal on any listener. */
  refused(code: RefusalCode): void
  /** In the text format of Prometheus. */
  text(): Promise<string>
  close(): void
}

export const openMetrics = (deps: MetricsDeps): Metrics => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const commits = counter('muster_commits_total', 'Changes committed to the store')
  const byEntry: Partial<Record<EntryType, Counter>> = {
    'host.enrolled': counter('muster_enrollments_total', 'Enrollments that succeeded'),
    'node.renewed': counter('muster_renewals_total', 'Certificates renewed'),
    'host.revoked': counter('muster_revocations_total', 'Nodes revoked'),
    'node.quarantined': counter('muster_quarantines_total', 'Nodes put into quarantine'),
    'node.lapsed': counter('muster_lapses_total', 'Nodes that became inactive'),
    'node.second_holder': counter('muster_second_holders_total', 'Identities found with a second holder'),
  }
  const refusals = new Counter({
    name: 'muster_refusals_total',
    help: 'Calls refused, by code',
    labelNames: ['code'] as const,
    registers,
  })
  openGauges(deps, registers)
  const unsubscribe = deps.feed.subscribe(({ entries }) => {
    commits.inc()
    for (const { entry } of entries) byEntry[entry.type]?.inc()
  })
  return {
    refused: (code) => refusals.inc({ code }),
    text: () => registry.metrics(),
    close: unsubscribe,
  }
}

const openGauges = (deps: MetricsDeps, registers: Registry[]): void => {
  new Gauge({
    name: 'muster_nodes',
    help: 'Nodes in the registry, by membership',
    labelNames: ['membership'] as const,
    registers,
    async collect() {
      const counts = await deps.store.countNodes()
      for (const membership of membershipKinds) this.set({ membership }, counts[membership])
    },
  })
  new Gauge({
    name: 'muster_channels_open',
    help: 'Channels open on this replica',
    registers,
    collect() {
      this.set(deps.channels.count())
    },
  })
  new Gauge({
    name: 'muster_admission_queue',
    help: 'Callers inside the admission queue',
    registers,
    collect() {
      this.set(deps.admissionQueue())
    },
  })
  new Gauge({
    name: 'muster_issuer_not_after_seconds',
    help: 'When the authority of this role that signs now expires, as a Unix time',
    labelNames: ['role'] as const,
    registers,
    collect() {
      this.reset()
      for (const { role, not_after: notAfter, signing } of deps.authority.view().authorities) {
        if (signing || role !== 'issuing') this.set({ role }, unixSeconds(notAfter))
      }
    },
  })
  new Gauge({
    name: 'muster_server_certificate_not_after_seconds',
    help: 'When the server certificate of the plane expires, as a Unix time',
    registers,
    collect() {
      this.set(unixSeconds(deps.authority.view().server_certificate.not_after))
    },
  })
}

const unixSeconds = (time: string): number => {
  const ms = parseIsoTime(time)
  if (ms === null) throw new Error(`${time} is not a time`)
  return ms / 1000
}
