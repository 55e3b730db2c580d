// Registration: the domain gets to know a node. Nothing outside the registry ever gets a certificate.

import {
  readOf,
  type Row,
  boundedText,
  decided,
  entry,
  type Attribution,
  type NodeDecided,
} from '#domain/core/change.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { hardwareWords, isBlank, sameHardware } from '#domain/core/hardware-identity.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { HardwareIdentity, Node, NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { firstTenure, type FormerNode, readsOfAbsent } from '#domain/core/purged-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type RegisterFacts = {
  readonly id: NodeId
  readonly profile: Row<Profile>
  readonly hardware: HardwareIdentity
  readonly existing: Row<Node> | null
  /** Counts where there is none. */
  readonly former: FormerNode
  /** Every node that holds any of this hardware. */
  readonly owners: readonly Row<Node>[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideRegister = (facts: RegisterFacts): NodeDecided | Refusal => {
  const { id, profile, hardware, existing, former, by, nowMs } = facts
  if (existing !== null && existing.value.membership.kind !== 'revoked') return known(existing.value, facts)

  const owner = facts.owners.find(({ value }) => value.id !== id && value.membership.kind !== 'revoked')
  if (owner !== undefined) {
    return refuse('HARDWARE_IDENTITY_CONFLICT', `${owner.value.id} has ${hardwareWords(owner.value.hardware)}`)
  }
  const { allOf } = profile.value.join
  if (allOf.includes('hardware') && !allOf.includes('token') && isBlank(hardware)) {
    // Nothing could ever be matched to this row, and there is no way to add the hardware afterwards.
    return refuse(
      'REQUEST_INVALID',
      `nodes of profile ${profile.value.name} are found by their hardware: give a MAC or a BMC serial`,
    )
  }

  const { epoch, tenure, counter } =
    existing === null ? firstTenure(former) : { ...existing.value, tenure: existing.value.tenure + 1 }
  const node = newNode({ id, profile: profile.value.name, hardware, epoch, tenure, counter, by, nowMs })
  return {
    ...decided({
      reads: [
        ...(existing === null ? readsOfAbsent(id, former) : [readOf('node', id, existing)]),
        readOf('profile', profile.value.name, profile),
      ],
      writes: [{ put: 'node', value: node }],
      entries: [registeredEntry(node, by, nowMs)],
    }),
    node,
  }
}

/** What a registration says that the node does not have, in words. */
export const differencesFrom = (node: Node, profile: Profile, hardware: HardwareIdentity): readonly string[] => [
  ...(sameHardware(node.hardware, hardware) ? [] : [`with other hardware: ${hardwareWords(node.hardware)}`]),
  ...(node.profile === profile.name ? [] : [`under profile ${node.profile}`]),
]

const known = (node: Node, { profile, hardware }: RegisterFacts): Refusal => {
  const differences = differencesFrom(node, profile.value, hardware)
  if (differences.length === 0) return refuse('NODE_ALREADY_ENROLLED', `${node.id} is ${node.membership.kind}`)
  return refuse('NODE_ALREADY_ENROLLED', boundedText(`${node.id} is registered ${differences.join(' and ')}`))
}

/** A node nothing is known of but what its registration says. A tombstone's epoch and counter go on, so that what was handed out before stays old. */
export const newNode = (given: {
  readonly id: NodeId
  readonly profile: string
  readonly hardware: HardwareIdentity
  readonly epoch: number
  readonly tenure: number
  readonly counter: number
  readonly by: Attribution
  readonly nowMs: number
}): Node => ({
  id: given.id,
  profile: given.profile,
  membership: { kind: 'registered', sinceMs: given.nowMs },
  epoch: given.epoch,
  tenure: given.tenure,
  assignment: null,
  drain: 'none',
  allocations: 0,
  wireguard: null,
  machine: nothingTagged,
  hardware: given.hardware,
  facts: null,
  assurance: 'none',
  conditions: [],
  approvals: [],
  counter: given.counter,
  recovery: null,
  repair: null,
  rehearsal: null,
  provisioning: null,
  scrapeAddress: null,
  registeredAtMs: given.nowMs,
  registeredBy: given.by.actor,
})

export const registeredEntry = (node: Node, by: Attribution, nowMs: number): EntryDraft =>
  entry(
    by,
    nowMs,
    'node.registered',
    { node: node.id, epoch: node.epoch },
    {
      profile: node.profile,
      macs: node.hardware.macs,
      bmc_serial: node.hardware.bmcSerial,
    },
  )
