// The report of an agent to the plane (the operator evidence of document 003). It always fits the schema, whatever its parts
// hold: a report that is refused would hide the very trouble it is about.

import { isoTime } from '#platform/clock.ts'
import { reportedConditions } from '#domain/node/reported-conditions.ts'
import { failureClasses, type FailureClass } from '#domain/core/node.ts'
import type { ReportBody } from '#wire/node/report.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { trustOf } from '#agent/state/trust.ts'
import { boundedEvidence, tidy } from '#agent/core/trouble.ts'
import type { FreeBytes } from '#agent/state/storage.ts'
import type { RecordedEvent } from './events.ts'
import type { ByClass, FailureSeen, Figures, RehearsalSeen } from './figures.ts'
import type { StatusFile, StatusTrouble } from './status-file.ts'

export type Report = Omit<ReportBody, 'instance' | 'number'>

type Reporting = {
  readonly clock: Pick<AgentParts['clock'], 'nowMs'>
  readonly keeper: Pick<AgentParts['keeper'], 'credentials'>
  readonly record: Pick<AgentParts['record'], 'now' | 'pressedSince'>
  readonly storage: Pick<
    AgentParts['storage'],
    'reserve' | 'errno' | 'freeBytes' | 'identityWritable' | 'diagnosticsWritable'
  >
}

const storyLines = 16
const storyBytes = 24 * 1024
const mostKinds = 16

/** Only for an agent that has an identity: without one no plane accepts a report. */
export const reportOf = (agent: Reporting): Report => {
  const { identity } = agent.keeper.credentials()
  if (identity === null) throw new Error('a report of an agent without an identity')
  const { figures, status, events } = agent.record.now()
  const byClass = countsFor(identity)
  const classOf = classFor(identity)
  return {
    at: timeOf(agent.clock.nowMs()),
    source: figures.source,
    certificate: { serial: identity.current.serial.slice(0, 64), not_after: timeOf(identity.current.notAfterMs) },
    clock_skew_ms: whole(figures.clockSkewMs),
    endpoint_set: {
      id: identity.endpoints.id.slice(0, 128),
      revision: whole(identity.endpoints.revision),
      drift_total: count(figures.driftTotal),
    },
    connection: connectionOf(identity, status.channel),
    last_exchange: timeOrNull(figures.lastExchangeMs),
    renewal: {
      attempts: count(figures.renewal.attempts),
      failures: byClass(figures.renewal.failures),
      last_attempt: timeOrNull(figures.renewal.lastAttemptMs),
      last_failure: failureOf(figures.renewal.lastFailure, classOf),
    },
    recovery: {
      attempts: byClass(figures.recovery.attempts),
      successes: count(figures.recovery.successes),
      failures: byClass(figures.recovery.failures),
      last_attempt: timeOrNull(figures.recovery.lastAttemptMs),
      last_failure: failureOf(figures.recovery.lastFailure, classOf),
    },
    rehearsal: rehearsalOf(figures.rehearsal),
    storage: storageOf(agent, figures),
    conditions: conditionsOf(status.troubles, agent.record.pressedSince(), agent.storage.freeBytes()).map((what) => ({
      ...what,
      since: what.since.slice(0, 32),
    })),
    story: latestLines(events.slice(-storyLines).map((event) => lineOf(event, classOf))),
  }
}

const mostUrls = 8
const mostRoots = 32

const connectionOf = (identity: Identity, { open, url }: StatusFile['channel']): NonNullable<Report['connection']> => {
  const { runtime, recovery = [] } = identity.endpoints
  const { plane, recovery: recoveryRoots, certificate } = trustOf(identity)
  return {
    runtime: runtime.slice(0, mostUrls),
    recovery: recovery.slice(0, mostUrls),
    channel: open ? url : null,
    plane_roots: plane.slice(0, mostRoots),
    recovery_roots: recoveryRoots.slice(0, mostRoots),
    certificate_root: certificate,
  }
}

const storageOf = ({ storage }: Reporting, figures: Figures): Report['storage'] => {
  const free = storage.freeBytes()
  return {
    identity_writable: storage.identityWritable(),
    diagnostics_writable: storage.diagnosticsWritable(),
    reserve: storage.reserve(),
    errno: storage.errno()?.slice(0, 64) ?? null,
    free_bytes: {
      identity: count(free.identity),
      diagnostic: count(free.diagnostic),
      retry: count(free.retry),
      runtime: count(free.runtime),
    },
    diagnostic_write_failures: Object.fromEntries(
      Object.entries(figures.diagnosticWriteFailures)
        .filter(([errno]) => /^[A-Za-z0-9_]{1,32}$/.test(errno))
        .slice(0, mostKinds)
        .map(([errno, failures]) => [errno, count(failures)]),
    ),
    dropped_records: figures.dropped.slice(0, mostKinds).map(({ source, reason, count: dropped }) => ({
      source: tidy(source, 64),
      reason: tidy(reason, 64),
      count: count(dropped),
    })),
  }
}

/** A report has to fit in one frame. */
const latestLines = (lines: Report['story']): Report['story'] =>
  Buffer.byteLength(JSON.stringify(lines)) <= storyBytes ? lines : latestLines(lines.slice(1))

const lineOf = (event: RecordedEvent, classOf: ClassFor): Report['story'][number] => ({
  at: event.at,
  place: event.place,
  event: event.event,
  class: event.class === null ? null : classOf(event.class),
  code: event.code,
  text: event.text,
  next: event.next,
  times: count(event.times),
  correlation: event.correlation,
})

const failureOf = (seen: FailureSeen | null, classOf: ClassFor): Report['renewal']['last_failure'] =>
  seen === null
    ? null
    : {
        at: timeOf(seen.atMs),
        class: classOf(seen.trouble.class ?? 'endpoint_unreachable'),
        code: tidy(seen.trouble.code, 64),
        text: tidy(seen.trouble.text, 512),
      }

const rehearsalOf = (seen: RehearsalSeen | null): Report['rehearsal'] =>
  seen === null
    ? null
    : {
        at: timeOf(seen.atMs),
        outcome: seen.outcome,
        step: seen.step,
        why: seen.why === null ? null : tidy(seen.why, 64),
      }

type ClassFor = (name: FailureClass) => FailureClass

/** A plane of 0.2.0 refuses a report that names a class it does not know. */
export const classFor =
  ({ understands }: Pick<Identity, 'understands'>): ClassFor =>
  (name) =>
    name === 'credentials_damaged' && !understands.includes(name) ? 'endpoint_unreachable' : name

/** Every class the plane knows, since none may be left out. */
const countsFor = (identity: Identity) => {
  const classOf = classFor(identity)
  return (counts: ByClass): Report['renewal']['failures'] => {
    const of = (name: FailureClass): number => {
      const classes = failureClasses.filter((each) => classOf(each) === name)
      return count(classes.reduce((sum, each) => sum + (counts[each] ?? 0), 0))
    }
    return {
      endpoint_unreachable: of('endpoint_unreachable'),
      server_tls_untrusted: of('server_tls_untrusted'),
      cert_expired: of('cert_expired'),
      identity_revoked_or_fenced: of('identity_revoked_or_fenced'),
      endpoint_profile_drift: of('endpoint_profile_drift'),
      recovery_enrollment_blocked: of('recovery_enrollment_blocked'),
      disk_full: of('disk_full'),
      clock_skew: of('clock_skew'),
      ...(classOf('credentials_damaged') === 'credentials_damaged'
        ? { credentials_damaged: of('credentials_damaged') }
        : {}),
    }
  }
}

const whole = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, value)))

const count = (value: number): number => Math.max(0, whole(value))

/** Years beyond 9999 have an ISO form that other programs do not parse. */
const latestMs = 253_402_214_400_000

const timeOf = (ms: number): string => isoTime(Math.min(latestMs, count(ms)))

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : timeOf(ms))

type ReportedCondition = ReportBody['conditions'][number]

const longestReason = 256

/** One of each name: the trouble that has lasted longest. `pressedSince`: little room on the disk, or null. */
export const conditionsOf = (
  troubles: readonly StatusTrouble[],
  pressedSince: string | null,
  free: FreeBytes,
): readonly ReportedCondition[] => {
  const reported = [...troubles]
    .sort((a, b) => (a.since < b.since ? -1 : 1))
    .flatMap((what) => conditionOf(what) ?? [])
    .filter(({ name }, index, all) => all.findIndex((other) => other.name === name) === index)
  return pressedSince === null ? reported : [...reported, pressure(pressedSince, free)]
}

const conditionOf = (what: StatusTrouble): ReportedCondition | null => {
  const name = reportedConditions.find((condition) => condition === what.class)
  if (name === undefined) return null
  return {
    name,
    since: what.since,
    reason: what.text.slice(0, longestReason),
    evidence: boundedEvidence(what.evidence),
  }
}

const pressure = (since: string, free: FreeBytes): ReportedCondition => ({
  name: 'node_observability_disk_pressure',
  since,
  reason: 'Little room is left on the disk of the agent; it drops logs and records, and keeps its credentials.',
  evidence: { free_bytes: free.diagnostic },
})
