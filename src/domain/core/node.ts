// What the registry knows of one machine. Orthogonal fields, not one enum (docs/RULINGS.md#the-state-of-a-node).

import type { HardwareState } from './hardware-profile.ts'
import type { NodeWireguard } from './wireguard.ts'

export type NodeId = string

export type Node = {
  readonly id: NodeId
  readonly profile: string
  readonly membership: Membership
  /** The current epoch; 0 before the first. Only ever grows, across tombstones too. */
  readonly epoch: number
  /** How often the registry has taken it in: at a registration, again after a tombstone, and at a release from quarantine. */
  readonly tenure: number
  /** The vCluster, or null: maintenance mode. */
  readonly assignment: string | null
  /** What operators asked of the scheduler; whether the node is schedulable is derived (fleet/scheduling.ts). */
  readonly drain: 'none' | 'draining' | 'drained'
  /** How many allocations it has; see fleet/allocation.ts. */
  readonly allocations: number
  /** Null: it takes no part in the WireGuard network. */
  readonly wireguard: NodeWireguard | null
  readonly machine: HardwareState
  readonly hardware: HardwareIdentity
  /** The hardware that its agent reported; left out where nothing is known. See reported-hardware.ts. */
  readonly reportedHardware?: ReportedHardware
  /** As the node reported them at enrollment. */
  readonly facts: HardwareFacts | null
  readonly assurance: Assurance
  readonly conditions: readonly Condition[]
  readonly approvals: readonly Approval[]
  /** Counts the certificates handed out to it, over all epochs: a caller with an older count is a copy (ruling 6). */
  readonly counter: number
  /** How it comes back when its certificate cannot; null: nothing is registered. */
  readonly recovery: Recovery | null
  /** The last repair bundle made for it. */
  readonly repair: Repair | null
  /** What its last recovery rehearsal showed; changes of it are journaled, its time is only observed. */
  readonly rehearsal: Rehearsal | null
  /** How far an adapter has brought the machine; null: none looks after it. */
  readonly provisioning: Provisioning | null
  /** Where a Prometheus may scrape the machine, as an operator registered it: `host:port`. The plane never connects to it. */
  readonly scrapeAddress: string | null
  readonly registeredAtMs: number
  readonly registeredBy: string
  /** What of its row cannot be read (journal/node-shape.ts): then this is a stand-in, which is shut out. */
  readonly unreadable?: string
}

/** Each state carries only what it knows. */
export type Membership =
  | { readonly kind: 'registered'; readonly sinceMs: number }
  /** A certificate is issued and has not been used yet. */
  | { readonly kind: 'enrolled'; readonly sinceMs: number; readonly slots: Slots }
  | { readonly kind: 'active'; readonly sinceMs: number; readonly slots: Slots }
  /** Without slots after a quarantine: its epoch is denied, it has to join anew. */
  | { readonly kind: 'inactive'; readonly sinceMs: number; readonly slots: Slots | null }
  /** With slots after a repair: they open a channel for evidence, and nothing else. */
  | {
      readonly kind: 'quarantined'
      readonly sinceMs: number
      readonly reason: string
      readonly by: string
      readonly slots: Slots | null
      /** The journal says that it was revoked, and its row said otherwise: that revocation. */
      readonly revokedBefore?: FormerRevocation
    }
  | { readonly kind: 'revoked'; readonly sinceMs: number; readonly reason: string; readonly by: string }

export type FormerRevocation = { readonly by: string; readonly reason: string; readonly atMs: number }

/** The certificates of the current epoch. `pending` becomes `current` at its first use; the one it replaces drains. */
export type Slots = {
  readonly current: Slot
  readonly pending: Slot | null
  readonly retired: { readonly slot: Slot; readonly untilMs: number } | null
}

export type Slot = {
  readonly issuer: IssuerId
  readonly serial: string
  /** SHA-256 of the public key (SubjectPublicKeyInfo), hex. */
  readonly spki: string
  /** SHA-256 of the whole certificate, hex. */
  readonly sha256: string
  readonly issuedAtMs: number
  readonly notAfterMs: number
}

/** The subject key identifier of the certificate that signed, hex: one per issuing key. */
export type IssuerId = string

export type HardwareIdentity = {
  /** Lower case, colons, sorted, no duplicates. */
  readonly macs: readonly string[]
  readonly bmcSerial: string | null
}

/** `epoch`: the one it holds for. A replica of the release before starts an epoch without renewing it. */
export type ReportedHardware = HardwareIdentity & { readonly epoch: number }

export const noHardware: HardwareIdentity = { macs: [], bmcSerial: null }

export type HardwareFacts = {
  readonly cpuCores: number
  readonly memoryBytes: number
  readonly diskBytes: number
  readonly arch: string
}

/** How strongly the node has proved itself, weakest first. */
export const assurances = ['none', 'token', 'hardware', 'ek-pinned', 'ek-chain', 'measured'] as const
export type Assurance = (typeof assurances)[number]

export const conditionNames = [
  'stuck_enrollment',
  'cert_expiring',
  'cert_expired',
  'spoof_suspected',
  'duplicate_identity',
  'needs_approval',
  'not_persisted',
  'clock_skew',
  'disk_full',
  'endpoint_profile_drift',
  'node_observability_disk_pressure',
  'recovery_enrollment_blocked',
  'not_recoverable',
  'unhealthy',
  'overlay_failed',
  'config_drift',
  'service_failed',
  'wireguard_failed',
  'active_elsewhere',
  'output_failed',
] as const
export type ConditionName = (typeof conditionNames)[number]

export type Condition = {
  readonly name: ConditionName
  readonly sinceMs: number
  readonly reason: string
  /** Bounded facts that support it. */
  readonly evidence: Readonly<Record<string, string | number | null>>
}

/** One operator's yes to a node that came back and has to be approved. */
export type Approval = { readonly by: string; readonly atMs: number }

export type Recovery = {
  readonly credential: RecoveryCredential
  /** When it recovered, oldest first; only as many as the budget looks at. */
  readonly recoveredAtMs: readonly number[]
  /** An operator said no; an approval takes it back. */
  readonly denied: { readonly by: string; readonly atMs: number } | null
  /** Links the failure that made a recovery necessary to the first use that ends the story. */
  readonly episode: string | null
}

export type RecoveryCredential =
  /** `spki`: SHA-256 of the key, hex. `publicKey`: SubjectPublicKeyInfo, DER, base64. */
  | {
      readonly kind: 'key'
      readonly spki: string
      readonly publicKey: string
      readonly registeredAtMs: number
      /** The one before, good until the certificate it was replaced with has been used; left out where there is none. */
      readonly former?: { readonly spki: string; readonly publicKey: string }
    }
  /** `former`: the one before, good until the certificate it was rotated with has been used. */
  | {
      readonly kind: 'bearer'
      readonly hash: string
      readonly former: string | null
      readonly registeredAtMs: number
    }

/** An operator's emergency credential: the only one a quarantined node may recover with. */
export type Repair = {
  readonly id: string
  readonly hash: string
  readonly by: string
  readonly reason: string
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  readonly usedBy: { readonly spki: string; readonly epoch: number; readonly atMs: number } | null
  /** What the repaired machine showed over its channel. */
  readonly evidence: RepairEvidence | null
}

export type RepairEvidence = {
  readonly passed: boolean
  readonly atMs: number
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

export type Rehearsal =
  | { readonly outcome: 'passed'; readonly sinceMs: number; readonly epoch: number }
  /** `step`: where the ceremony ended; `why`: a code or a failure class. */
  | {
      readonly outcome: 'failed'
      readonly sinceMs: number
      readonly epoch: number
      readonly step: RehearsalStep
      readonly why: string
    }

export const rehearsalSteps = ['endpoint', 'trust', 'proof', 'counter', 'budget', 'disk', 'clock'] as const
export type RehearsalStep = (typeof rehearsalSteps)[number]

/** Why a node is not connected. domain/recovery/failure-class.ts says which it is. */
export const failureClasses = [
  'endpoint_unreachable',
  'server_tls_untrusted',
  'cert_expired',
  'identity_revoked_or_fenced',
  'endpoint_profile_drift',
  'recovery_enrollment_blocked',
  'disk_full',
  'clock_skew',
  'credentials_damaged',
] as const
export type FailureClass = (typeof failureClasses)[number]

export const provisioningStates = [
  'commissioning',
  'commissioned',
  'ready',
  'deploying',
  'deployed',
  'releasing',
  'failed',
] as const

/** As an adapter such as MAAS has it. Nothing here is decided by it but where work is placed. */
export type Provisioning = {
  readonly state: (typeof provisioningStates)[number]
  readonly detail: string | null
  readonly sinceMs: number
  /** The adapter: whose key said so. */
  readonly by: string
}

export const membershipKinds = ['registered', 'enrolled', 'active', 'inactive', 'quarantined', 'revoked'] as const
