// The plane itself in figures, looked at when they are asked for.

import { Gauge, type Registry } from 'prom-client'
import { alertKinds, alertSeverities } from '#domain/alerts/alert-kinds.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { musterVersion } from '#platform/this-process.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import type { UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { JournalWatch } from '#plane/journal/journal-watch.ts'
import type { Replicas, Standing } from '#plane/store/contract/replicas.ts'
import type { Alerting } from '#plane/alerts/alerting.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'

type IssuerHealth = { readonly away: object | null; readonly waiting: number }

export type MeasuredParts = {
  readonly channels: Pick<OpenChannels, 'count'>
  readonly authority: Pick<Authority, 'view'>
  readonly alerts: Pick<UnresolvedAlerts, 'all'>
  readonly journalWatch: Pick<JournalWatch, 'last'>
  readonly admission: Pick<AdmissionQueue, 'waiting'>
  readonly alerting: Pick<Alerting, 'waitingDeliveries'>
  /** Outside ones. */
  readonly issuers: () => readonly { readonly name: string; readonly health: IssuerHealth }[]
  /** Empty when the plane can do its work. */
  readonly notReady: () => readonly string[]
}

/** Always 1: what it says is in its labels, by which others can be selected. */
export const openPlaneInfo = (domain: string, registers: Registry[]): void => {
  const info = new Gauge({
    name: 'muster_plane_info',
    help: 'The domain and the version of this plane; always 1',
    labelNames: ['domain', 'version'] as const,
    registers,
  })
  info.set({ domain, version: musterVersion }, 1)
}

/** What every replica shows alike, and what each shows of itself. */
export type Registers = { readonly ofDomain: Registry[]; readonly ofReplica: Registry[] }

export const openPlaneGauges = (parts: MeasuredParts, { ofDomain, ofReplica: registers }: Registers): void => {
  const gauge = gaugeOf(registers)
  gauge('muster_ready', '1 while the plane can do its work', () => (parts.notReady().length === 0 ? 1 : 0))
  gauge('muster_channels_open', 'Channels open on this replica', () => parts.channels.count())
  gauge('muster_admission_queue', 'Callers inside the admission queue', () => parts.admission.waiting())
  gauge('muster_webhook_waiting', 'Changes of alerts the webhook has not been told of', () =>
    parts.alerting.waitingDeliveries(),
  )
  gauge(
    'muster_server_certificate_not_after_seconds',
    'When the server certificate of the plane expires, as a Unix time',
    () => unixSeconds(parts.authority.view().server_certificate.not_after),
  )
  const last = () => parts.journalWatch.last()
  gauge(
    'muster_journal_verified_timestamp_seconds',
    'When this plane last verified the journal, as a Unix time; 0: not since it started',
    () => (last()?.finishedAtMs ?? 0) / 1000,
  )
  gauge(
    'muster_journal_verified_entries',
    'Entries of the journal that were intact when this plane last verified it',
    () => last()?.journal.entries ?? 0,
  )
  gauge('muster_journal_broken', '1 where the journal was not what was written', () =>
    last()?.journal.kind === 'broken' ? 1 : 0,
  )
  gauge(
    'muster_rows_differing',
    'Rows that differed from the journal when this plane last compared them',
    () => last()?.rows.differences.length ?? 0,
  )
  new Gauge({
    name: 'muster_issuer_not_after_seconds',
    help: 'When the authority of this role that signs now expires, as a Unix time',
    labelNames: ['role'] as const,
    registers,
    collect() {
      this.reset()
      for (const { role, not_after: notAfter, signing } of parts.authority.view().authorities) {
        if (signing || role === 'root' || role === 'domain-ca') this.set({ role }, unixSeconds(notAfter))
      }
    },
  })
  openIssuerGauges(parts.issuers, registers)
  openAlertGauge(parts.alerts, ofDomain)
}

/** As this replica finds them: breakers and slots are its own. */
const openIssuerGauges = (issuers: MeasuredParts['issuers'], registers: Registry[]): void => {
  const gauge = (name: string, help: string, value: (health: IssuerHealth) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['issuer'] as const,
      registers,
      collect() {
        this.reset()
        for (const { name: issuer, health } of issuers()) this.set({ issuer }, value(health))
      },
    })
  }
  gauge(
    'muster_issuer_away',
    '1 while this replica does not ask an outside issuer, but for a probe now and then',
    ({ away }) => (away === null ? 0 : 1),
  )
  gauge('muster_issuer_waiting', 'Requests that wait for a slot of an outside issuer', ({ waiting }) => waiting)
}

const unresolvedStates = ['open', 'acknowledged'] as const

const openAlertGauge = (alerts: MeasuredParts['alerts'], registers: Registry[]): void => {
  new Gauge({
    name: 'muster_alerts',
    help: 'Alerts that are not resolved',
    labelNames: ['kind', 'severity', 'state'] as const,
    registers,
    collect() {
      for (const kind of alertKinds)
        for (const severity of alertSeverities)
          for (const state of unresolvedStates) this.set({ kind, severity, state }, 0)
      for (const { kind, severity, state } of alerts.all()) this.inc({ kind, severity, state: state.kind })
    },
  })
}

const unixSeconds = (time: string): number => {
  const ms = parseIsoTime(time)
  if (ms === null) throw new Error(`${time} is not a time`)
  return ms / 1000
}

/** A figure that is looked at when it is asked for. */
const gaugeOf =
  (registers: Registry[]) =>
  (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })
  }

// The standing of this replica among the others over the same store.

const standings: readonly Standing['kind'][] = ['serving', 'behind', 'skewed', 'in-doubt', 'expired']

export const openReplicaGauges = (replicas: Replicas, { ofDomain, ofReplica: registers }: Registers): void => {
  const gauge = gaugeOf(registers)
  gaugeOf(ofDomain)('muster_replicas', 'Planes with a lease on this store, as this one last saw them', () =>
    replicas.count(),
  )
  gauge('muster_leads', '1 while this plane is the leader and runs the background jobs', () =>
    replicas.leadership() === null ? 0 : 1,
  )
  gauge(
    'muster_feed_age_seconds',
    'How long ago this plane knew of everything the others had committed',
    () => (replicas.behindMs() ?? Number.POSITIVE_INFINITY) / 1000,
  )
  gauge(
    'muster_clock_offset_seconds',
    "How far the clock of this plane is ahead of the database's; 0 with the embedded store",
    () => (replicas.clockOffsetMs() ?? 0) / 1000,
  )
  new Gauge({
    name: 'muster_standing',
    help: 'How this plane stands: serving, behind (it decides nothing), skewed (its clock is off), in-doubt (its store has lost commits) or expired (it answers nothing)',
    labelNames: ['standing'] as const,
    registers,
    collect() {
      const now = replicas.standing().kind
      for (const standing of standings) this.set({ standing }, standing === now ? 1 : 0)
    },
  })
}
