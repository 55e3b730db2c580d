// The values that hold for the whole domain.

import type { Continuity } from '#domain/continuity/continuity.ts'
import type { Issuance } from '#domain/identity/issuance.ts'
import type { Service } from '#domain/fleet/overlay.ts'
import type { Policy } from '#domain/fleet/policy.ts'
import { tasksOff, type TaskSwitches } from './task-types.ts'

export type DomainSettings = {
  /** The trust domain: the authority of every SPIFFE name. Set at first start, never changed. */
  readonly name: string
  readonly defaultProfile: string
  /** How long an active node may be without a channel before it lapses. */
  readonly livenessGraceMs: number
  /** Failing enrollments a minute, overall and for one source, before they are refused without being read. */
  readonly strangersPerMinute: number
  readonly strangersPerMinutePerSource: number
  readonly clockToleranceMs: number
  readonly stuckEnrollmentMs: number
  /** How long a replaced certificate still serves while its connections drain. */
  readonly drainMs: number
  /** Whether the store is the one its nodes have seen. No setting: it follows from what they show, and from operators who look. */
  readonly continuity: Continuity
  /** No setting either: see identity/issuance.ts. */
  readonly issuance: Issuance
  /** What nodes without a vCluster run under. */
  readonly maintenance: { readonly policy: Policy; readonly timeSync: Service | null }
  /** Of the WireGuard network, e.g. fd12:3456:789a::/64; null: made from the name of the domain. */
  readonly overlayPrefix: string | null
  /**
   * How long a revocation list for programs is good for. A program whose lists have ended refuses everybody, so this is how long
   * an outage of the plane may last. No list is good for less than the longest lifetime of an output.
   */
  readonly programListMs: number
  /** Whether tasks of these types may be queued at all. */
  readonly tasks: TaskSwitches
}

// What a new domain begins with. They are here and not with their types, because those features build on the settings.

export const unbroken: Continuity = { lineage: 0, doubt: null }

export const openIssuance: Issuance = { kind: 'open' }

/** Of nodes without a vCluster, unless the domain says otherwise. */
export const maintenancePolicy: Policy = {
  enforcementMode: 'observe',
  execWhitelist: [],
  shellWhitelist: [],
  regulated: false,
}

const minute = 60_000

/** Domains that an earlier release has stored get it, too. */
export const defaultProgramListMs = 7 * 24 * 60 * minute

export const defaultDomainSettings = (name: string): DomainSettings => ({
  name,
  defaultProfile: 'gpu-cloud',
  livenessGraceMs: 5 * minute,
  strangersPerMinute: 100,
  strangersPerMinutePerSource: 25,
  clockToleranceMs: 5 * minute,
  stuckEnrollmentMs: 10 * minute,
  drainMs: minute,
  continuity: unbroken,
  issuance: openIssuance,
  maintenance: { policy: maintenancePolicy, timeSync: null },
  overlayPrefix: null,
  programListMs: defaultProgramListMs,
  tasks: tasksOff,
})
