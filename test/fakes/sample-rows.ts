// Rows for tests: complete values, of which a test names only what it is about.

import type { Allocation } from '#domain/fleet/allocation.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import type { Row, Attribution } from '#domain/core/change.ts'
import { defaultDomainSettings, maintenancePolicy, type DomainSettings } from '#domain/core/domain-settings.ts'
import type { HolderFacts } from '#domain/identity/duplicate.ts'
import type { Membership, Node, Recovery, Repair, Slot, Slots } from '#domain/core/node.ts'
import { noOverlay } from '#domain/fleet/overlay.ts'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import type { FormerNode } from '#domain/core/purged-node.ts'
import type { Token } from '#domain/core/token.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'

export const minute = 60_000
export const hour = 60 * minute
export const noonMs = Date.UTC(2030, 0, 1, 12)

export const alice: Attribution = { actor: 'operator:alice', source: '192.0.2.7', correlation: 'story-1' }
export const bob: Attribution = { ...alice, actor: 'operator:bob' }

export const row = <T>(value: T, version = 7): Row<T> => ({ value, version })

export const domainRow = (changes: Partial<DomainSettings> = {}): Row<DomainSettings> =>
  row({ ...defaultDomainSettings('lab.example'), ...changes }, 3)

/** Of a store that a node has seen further than it is. */
export const doubtedDomainRow = (): Row<DomainSettings> => {
  const doubt = { why: 'missing', lineage: 0, chain: 'c1', sequence: 80, ours: 50, node: 'gpu-007' } as const
  return domainRow({ continuity: { lineage: 0, doubt: { ...doubt, sinceMs: noonMs, newestEntryMs: null } } })
}

/** An operator has halted issuance. */
export const haltedDomainRow = (renewals: boolean): Row<DomainSettings> =>
  domainRow({ issuance: { kind: 'halted', by: 'operator:carol', sinceMs: noonMs, reason: 'audit', renewals } })

export const profileRow = (name: string, changes: Partial<Profile> = {}): Row<Profile> => {
  const shipped = shippedProfiles.find((profile) => profile.name === name)
  if (shipped === undefined) throw new Error(`no profile ${name} ships`)
  return row({ ...shipped, ...changes }, 5)
}

export const slot = (serial: string, changes: Partial<Slot> = {}): Slot => ({
  issuer: 'ca1',
  serial,
  spki: `key-of-${serial}`,
  sha256: `hash-of-${serial}`,
  issuedAtMs: noonMs - hour,
  notAfterMs: noonMs + 23 * hour,
  ...changes,
})

export const slots = (changes: Partial<Slots> = {}): Slots => ({
  current: slot('a1'),
  pending: null,
  retired: null,
  ...changes,
})

export const memberships = {
  registered: { kind: 'registered', sinceMs: noonMs - hour },
  enrolled: { kind: 'enrolled', sinceMs: noonMs - hour, slots: slots() },
  active: { kind: 'active', sinceMs: noonMs - hour, slots: slots() },
  inactive: { kind: 'inactive', sinceMs: noonMs - hour, slots: slots() },
  quarantined: {
    kind: 'quarantined',
    sinceMs: noonMs - hour,
    reason: 'odd traffic',
    by: 'operator:carol',
    slots: null,
  },
  revoked: { kind: 'revoked', sinceMs: noonMs - hour, reason: 'stolen', by: 'operator:carol' },
} as const satisfies { [K in Membership['kind']]: Extract<Membership, { kind: K }> }

export const nodeRow = (kind: Membership['kind'], changes: Partial<Node> = {}): Row<Node> =>
  row({
    id: 'gpu-001',
    profile: 'gpu-cloud',
    membership: memberships[kind],
    epoch: kind === 'registered' ? 0 : 4,
    tenure: 1,
    assignment: null,
    drain: 'none',
    allocations: 0,
    wireguard: null,
    machine: nothingTagged,
    hardware: { macs: ['02:00:00:00:00:01'], bmcSerial: 'BMC-1' },
    facts: null,
    assurance: 'token',
    conditions: [],
    approvals: [],
    counter: 1,
    recovery: null,
    repair: null,
    rehearsal: null,
    provisioning: null,
    scrapeAddress: null,
    registeredAtMs: noonMs - 2 * hour,
    registeredBy: 'operator:carol',
    ...changes,
  })

/** Of a name that was never purged. */
export const neverKnown: FormerNode = { key: 'hash-of-name', row: null }

export const keyRecovery = (changes: Partial<Recovery> = {}): Recovery => ({
  credential: { kind: 'key', spki: 'recovery-key', publicKey: 'cHVibGlj', registeredAtMs: noonMs - hour },
  recoveredAtMs: [],
  denied: null,
  episode: null,
  ...changes,
})

export const bearerRecovery = (hash: string, former: string | null = null): Recovery =>
  keyRecovery({ credential: { kind: 'bearer', hash, former, registeredAtMs: noonMs - hour } })

export const repair = (changes: Partial<Repair> = {}): Repair => ({
  id: 'r1',
  hash: 'hash-of-bundle',
  by: 'operator:carol',
  reason: 'stale trust',
  issuedAtMs: noonMs - minute,
  expiresAtMs: noonMs + hour,
  usedBy: null,
  evidence: null,
  ...changes,
})

/** A process and its machine, told from others by the number. */
export const holder = (number: number, changes: Partial<HolderFacts> = {}): HolderFacts => ({
  instance: `${number}`.repeat(22),
  source: `192.0.2.${number}`,
  macs: [`02:00:00:00:00:0${number}`],
  bmcSerial: `BMC-${number}`,
  machine: String(number).repeat(64),
  serial: 'a1',
  agentVersion: '0.1.0',
  ...changes,
})

export const tokenRow = (changes: Partial<Token> = {}): Row<Token> =>
  row({
    id: 't1',
    hash: 'hash-of-secret',
    scope: { kind: 'node', node: 'gpu-001', tenure: 1 },
    profile: 'gpu-cloud',
    replace: false,
    serverName: 'dns:plane.example',
    createdBy: 'operator:carol',
    createdAtMs: noonMs - minute,
    expiresAtMs: noonMs + minute,
    state: { kind: 'unused' },
    ...changes,
  })

export const allocationRow = (id: string, changes: Partial<Allocation> = {}): Row<Allocation> =>
  row(
    {
      id,
      vcluster: 'vc1',
      owner: 'slurm',
      node: 'gpu-001',
      createdAtMs: noonMs - hour,
      createdBy: 'operator:slurm',
      state: { kind: 'running' },
      ...changes,
    },
    2,
  )

export const vclusterRow = (name: string, changes: Partial<VCluster> = {}): Row<VCluster> =>
  row(
    {
      name,
      description: '',
      revision: 1,
      policy: maintenancePolicy,
      overlay: noOverlay,
      outputs: [],
      tasks: { types: [] },
      peering: 'mesh',
      closed: false,
      createdAtMs: noonMs - hour,
      createdBy: 'operator:carol',
      deletedAtMs: null,
      ...changes,
    },
    4,
  )
