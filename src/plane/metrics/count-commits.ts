// Counts what this plane has committed, as the feed publishes it.

import { Counter, type Registry } from 'prom-client'
import { entryTypes, type EntryType } from '#domain/core/journal-entry.ts'
import type { Feed } from '#plane/core/feed.ts'

type Counted = Readonly<Partial<Record<EntryType, Pick<Counter, 'inc'>>>>

/** Returns how to stop. */
export const countCommits = (feed: Feed, registers: Registry[]): (() => void) => {
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const commits = counter('muster_commits_total', 'Changes committed to the store')
  const entries = new Counter({
    name: 'muster_journal_entries_total',
    help: 'Entries of the journal, by type',
    labelNames: ['type'] as const,
    registers,
  })
  // Resolved once: looking a label up at every entry would cost more than counting it.
  const byType = new Map(entryTypes.map((type) => [type, counted(entries, { type })]))
  const byEntry: readonly Counted[] = [
    {
      'host.enrolled': counter('muster_enrollments_total', 'Enrollments that succeeded'),
      'node.renewed': counter('muster_renewals_total', 'Certificates of nodes renewed'),
      'host.revoked': counter('muster_revocations_total', 'Nodes revoked'),
      'node.quarantined': counter('muster_quarantines_total', 'Nodes put into quarantine'),
      'node.lapsed': counter('muster_lapses_total', 'Nodes that became inactive'),
      'node.second_holder': counter(
        'muster_second_holders_total',
        'Identities that another process was found to use as well',
      ),
    },
    countIssued(registers),
    countRecoveries(registers),
    countAlerts(registers),
    countTasks(registers),
  ]
  return feed.subscribe('metrics', (committed) => {
    // The replica that committed it has counted it.
    if (committed.origin === 'elsewhere') return
    commits.inc()
    for (const { entry } of committed.entries) {
      byType.get(entry.type)?.inc()
      for (const counters of byEntry) counters[entry.type]?.inc()
    }
  })
}

const countIssued = (registers: Registry[]): Counted => {
  const issued = new Counter({
    name: 'muster_certificates_issued_total',
    help: 'Certificates issued, by what for',
    labelNames: ['kind'] as const,
    registers,
  })
  const recovered = counted(issued, { kind: 'recover' })
  const worker = counted(issued, { kind: 'worker' })
  const program = counted(issued, { kind: 'program' })
  return {
    'host.enrolled': counted(issued, { kind: 'enroll' }),
    'node.renewed': counted(issued, { kind: 'renew' }),
    'node.recovered': recovered,
    'node.repaired': recovered,
    'server_certificate.issued': counted(issued, { kind: 'server' }),
    'worker.enrolled': worker,
    'worker.renewed': worker,
    'program.issued': program,
    'program.renewed': program,
  }
}

const countRecoveries = (registers: Registry[]): Counted => {
  const recoveries = new Counter({
    name: 'muster_recoveries_total',
    help: 'Recoveries that succeeded, by what with: the credential of the node, or a repair bundle',
    labelNames: ['by'] as const,
    registers,
  })
  return {
    'node.recovered': counted(recoveries, { by: 'credential' }),
    'node.repaired': counted(recoveries, { by: 'repair_bundle' }),
  }
}

const countAlerts = (registers: Registry[]): Counted => {
  const changes = new Counter({
    name: 'muster_alert_changes_total',
    help: 'Alerts raised, acknowledged and resolved',
    labelNames: ['to'] as const,
    registers,
  })
  return {
    'alert.raised': counted(changes, { to: 'raised' }),
    'alert.acknowledged': counted(changes, { to: 'acknowledged' }),
    'alert.resolved': counted(changes, { to: 'resolved' }),
  }
}

const countTasks = (registers: Registry[]): Counted => {
  const queued = new Counter({ name: 'muster_tasks_queued_total', help: 'Tasks queued', registers })
  const dispatched = new Counter({
    name: 'muster_tasks_dispatched_total',
    help: 'Tasks sent to their nodes',
    registers,
  })
  const ended = new Counter({
    name: 'muster_task_results_total',
    help: 'Tasks that have ended, by how; refused: by the host, which did not begin with them',
    labelNames: ['outcome'] as const,
    registers,
  })
  return {
    'task.queued': queued,
    'task.dispatched': dispatched,
    'task.completed': counted(ended, { outcome: 'completed' }),
    'task.failed': counted(ended, { outcome: 'failed' }),
    'task.refused': counted(ended, { outcome: 'refused' }),
    'task.unknown': counted(ended, { outcome: 'unknown' }),
    'task.expired': counted(ended, { outcome: 'expired' }),
    'task.cancelled': counted(ended, { outcome: 'cancelled' }),
  }
}

/** There from the start, at 0: a rate needs a first value. */
export const counted = <T extends string>(
  counter: Counter<T>,
  labels: Readonly<Record<T, string>>,
): Pick<Counter, 'inc'> => {
  counter.inc(labels, 0)
  return { inc: (by?: number) => counter.inc(labels, by) } as Pick<Counter, 'inc'>
}
