// What `muster top` shows, read with a viewer's key. Each look costs the plane the same, however large the fleet is: its metrics, one page
// of alerts, and the entries of the journal since the look before.

import type { Static } from 'typebox'
import { alertApi, type AlertView } from '#wire/alerts/alert-api.ts'
import { healthApi } from '#wire/core/health-api.ts'
import { journalApi, type EntryView } from '#wire/journal/journal-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import type { Clock } from '#platform/clock.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import { parseMetrics, totalOf, totalsBy, type Sample } from './metrics-text.ts'

export type FleetView = {
  readonly domain: string
  readonly states: Readonly<Record<string, number>>
  /** Channels to the replica that answered; null: it does not say. */
  readonly connected: number | null
  readonly recoverable: number | null
  /** Nodes whose newest certificate ends within so long. */
  readonly expiring: Readonly<Record<string, number>>
  readonly overdue: number | null
  readonly conditions: Readonly<Record<string, number>>
  readonly replicas: number | null
  readonly standing: string | null
  readonly leads: boolean
  readonly rates: Rates
  readonly alerts: { readonly first: readonly AlertView[]; readonly bySeverity: Readonly<Record<string, number>> }
  /** The newest last. */
  readonly journal: readonly JournalLine[]
}

/** A second. */
export type Rates = { readonly enrollments: number; readonly renewals: number; readonly recoveries: number }

export type JournalLine = {
  readonly atMs: number
  readonly type: string
  readonly node: string | null
  readonly actor: string
}

export type FleetWatch = { look(): Promise<FleetView> }

const mostAlerts = 20
const mostEntries = 1000
const firstEntries = 200
const windowMs = 60_000

export const watchFleet = async (plane: OperatorClient, clock: Clock): Promise<FleetWatch> => {
  const { name: domain } = await plane.ask(settingsApi.domain)
  let recent: readonly JournalLine[] = []
  let after: string | null = null
  const readJournal = async (): Promise<void> => {
    const page = await plane.ask(journalApi.read, {
      query: after === null ? { last: firstEntries } : { after, limit: mostEntries },
    })
    const isBehind = after !== null && page.entries.length === mostEntries
    after = isBehind ? null : (page.next ?? after)
    // More has happened than one page holds: the next look begins with the newest entries.
    recent = [...(isBehind ? [] : recent), ...page.entries.map(lineOf)].slice(-mostEntries)
  }
  return {
    async look() {
      const samples = parseMetrics(await plane.askText(healthApi.metrics))
      const { alerts } = await plane.ask(alertApi.list, { query: { limit: mostAlerts } })
      await readJournal()
      const alertsNow = { first: alerts, bySeverity: totalsBy(samples, 'muster_alerts', 'severity') }
      return {
        ...figuresIn(samples),
        domain,
        alerts: alertsNow,
        rates: ratesOf(recent, clock.nowMs()),
        journal: recent,
      }
    },
  }
}

type Figures = Omit<FleetView, 'domain' | 'alerts' | 'rates' | 'journal'>

const figuresIn = (samples: readonly Sample[]): Figures => ({
  states: totalsBy(samples, 'muster_nodes', 'membership'),
  connected: totalOf(samples, 'muster_channels_open'),
  recoverable: totalOf(samples, 'muster_nodes_recoverable'),
  expiring: totalsBy(samples, 'muster_certificates_expiring', 'within'),
  overdue: totalOf(samples, 'muster_certificates_overdue'),
  conditions: totalsBy(samples, 'muster_node_conditions', 'condition'),
  replicas: totalOf(samples, 'muster_replicas'),
  standing: samples.find(({ name, value }) => name === 'muster_standing' && value === 1)?.labels['standing'] ?? null,
  leads: totalOf(samples, 'muster_leads') === 1,
})

const lineOf = ({ entry }: Static<typeof EntryView>): JournalLine => ({
  atMs: Number(entry['atMs']),
  type: String(entry['type']),
  node: typeof entry['node'] === 'string' ? entry['node'] : null,
  actor: String(entry['actor']),
})

/** Over the last minute, or over what is known of it where so much happens that a page holds less. */
export const ratesOf = (entries: readonly JournalLine[], nowMs: number): Rates => {
  const sinceMs = nowMs - windowMs
  const within = entries.filter(({ atMs }) => atMs > sinceMs)
  const isWhole = within.length < entries.length || within.length < firstEntries
  const spanMs = isWhole ? windowMs : Math.max(1000, nowMs - (within[0]?.atMs ?? sinceMs))
  const rate = (type: string): number => within.filter((entry) => entry.type === type).length / (spanMs / 1000)
  return {
    enrollments: rate('host.enrolled'),
    renewals: rate('node.renewed'),
    recoveries: rate('node.recovered'),
  }
}
