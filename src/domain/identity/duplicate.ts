// Two holders of one identity (ruling 6). Of the two the one with the live channel stays; with no channel live, or where
// the profile says so, both are fenced until an operator decides. Both are named, with the evidence that distinguishes them.

import {
  readOf,
  type Change,
  type Row,
  boundedText,
  entry,
  nodeDecided,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { hasCondition, withCondition } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { hardwareWords } from '#domain/core/hardware-identity.ts'
import type { Condition, ConditionName, Node } from '#domain/core/node.ts'
import { isSourceProcess } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import { drainEnded, quarantinedNode } from '#domain/core/quarantined-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { denialOfEpoch, generationOf, slotsOf } from '#domain/core/certificate.ts'

/** The evidence that distinguishes one holder of an identity from another. Null: not known, as of an older agent. */
export type HolderFacts = {
  /** Of its process; of a long-poll that does not say, its `sourceProcess`. */
  readonly instance: string | null
  readonly source: string | null
  readonly macs: readonly string[]
  readonly bmcSerial: string | null
  readonly machine: string | null
  /** Of the certificate it uses. */
  readonly serial: string | null
  readonly agentVersion: string | null
}

/** What betrays that there are two. */
export type DuplicateSign =
  | 'old-counter'
  | 'replaced-serial'
  /** Replaced a moment ago: it still drains, and its successor is in use. */
  | 'draining-serial'
  | 'second-successor'
  /** The key of an earlier certificate, proven without the certificate (ruling 23). */
  | 'replaced-key'
  | 'second-instance'

export type DuplicateFacts = NodeFacts & {
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly sign: DuplicateSign
  readonly claimant: HolderFacts
  /** The claimant's own process has a channel open. */
  readonly claimantLive: boolean
  /** Another process with a live channel, which has answered a ping just now. */
  readonly otherHolder: HolderFacts | null
  /** What was last seen of the node, where no other holder is live: named, never decided on. */
  readonly lastSeen: HolderFacts | null
}

export type DuplicateVerdict =
  /** `change` is null when it is in the store already. */
  | { readonly kind: 'claimant-refused'; readonly refusal: Refusal; readonly change: Change | null }
  | { readonly kind: 'fenced'; readonly refusal: Refusal; readonly change: Change; readonly fence: Fence }
  /** It goes on as the one holder. `suspicion`: what to write down about the other, if anything points to one. */
  | { readonly kind: 'claimant-stays'; readonly suspicion: Suspicion | null }

/** On whose behalf the node is fenced, and why: what else it had goes in the same change. */
export type Fence = NodeFacts & { readonly why: string }

export type Suspicion = Pick<Condition, 'reason' | 'evidence'>

const reasons: Readonly<Record<DuplicateSign, string>> = {
  'old-counter': 'a machine presented an old recovery counter: the state of this node was probably copied',
  'replaced-serial': 'a machine used a replaced certificate: the state of this node was probably copied',
  'draining-serial': 'a new process used a certificate that was just replaced',
  'second-successor': 'two machines with the same certificate asked to renew it',
  'replaced-key': 'a machine proved an earlier key of this node: the state of this node was probably copied',
  'second-instance': 'a second process asked for this identity while another one is connected with it',
}

export const decideDuplicate = (facts: DuplicateFacts): DuplicateVerdict => {
  const { node, profile, claimant, claimantLive, otherHolder } = facts
  const keepsLive = profile.value.onDuplicate === 'keep-live'
  switch (node.value.membership.kind) {
    case 'registered':
    case 'revoked':
      return { kind: 'claimant-refused', refusal: refuse('DUPLICATE_IDENTITY'), change: null }
    case 'quarantined':
      // Fenced already: the repaired machine stays, also after a restart.
      return isNoCopy(facts) ? { kind: 'claimant-stays', suspicion: null } : claimantRefused(facts)
    case 'enrolled':
    case 'active':
    case 'inactive':
      break
  }
  if (isNoCopy(facts)) return { kind: 'claimant-stays', suspicion: null }
  // The plane has issued both certificates, so it knows which of the two holders is the older one.
  if (keepsLive && hasNewerCertificate(facts)) return { kind: 'claimant-stays', suspicion: olderHolder(facts) }
  if (keepsLive && otherHolder === null && claimantLive)
    return { kind: 'claimant-stays', suspicion: suspicionOf(facts) }
  if (keepsLive && facts.sign === 'draining-serial') return claimantRefused(facts)
  // Two processes of an older agent cannot be distinguished, so such an agent is never fenced here.
  const refuses = (keepsLive && otherHolder !== null) || claimant.instance === null
  return refuses ? claimantRefused(facts) : fenced(facts)
}

/**
 * A node that reported `not_persisted` comes back with its earlier credentials. A caller is a second process only if the
 * connected process has an instance id: a caller without one is not the connected process.
 */
const isNoCopy = ({ node, sign, otherHolder }: DuplicateFacts): boolean =>
  sign === 'second-instance'
    ? otherHolder === null || otherHolder.instance === null
    : otherHolder === null && hasCondition(node.value, 'not_persisted')

/** The claimant uses a successor of the certificate that the holder of the live channel uses. */
const hasNewerCertificate = ({ node, sign, claimant, otherHolder }: DuplicateFacts): boolean => {
  const slots = slotsOf(node.value)
  if (sign !== 'second-instance' || slots === null || otherHolder === null) return false
  const theirs = generationOf(slots, otherHolder.serial)
  return theirs > 0 && generationOf(slots, claimant.serial) > theirs
}

/** Names both the right way round: here the connected process is the one that is no longer the holder. */
const olderHolder = (facts: DuplicateFacts): Suspicion => {
  const { claimant, otherHolder } = facts
  if (otherHolder === null) throw new Error('an older holder that is not connected')
  return suspicionOf({ ...facts, sign: 'draining-serial', claimant: otherHolder, otherHolder: claimant })
}

const claimantRefused = (facts: DuplicateFacts): DuplicateVerdict => {
  const { node, profile, by, nowMs } = facts
  const raised = decideSecondHolder({ node, condition: 'duplicate_identity', ...suspicionOf(facts), by, nowMs })
  const stays = facts.sign === 'draining-serial' ? 'newer certificate' : 'live channel'
  const refusal = refuse('DUPLICATE_IDENTITY', `the holder with the ${stays} stays`)
  if (raised.kind === 'known') return { kind: 'claimant-refused', refusal, change: null }
  const reads = [...raised.change.reads, readOf('profile', profile.value.name, profile)]
  return { kind: 'claimant-refused', refusal, change: { ...raised.change, reads } }
}

/** What is written down where an operator looks; nothing is taken from the node for it. */
export type SecondHolderFacts = NodeFacts & {
  readonly condition: Extract<ConditionName, 'spoof_suspected' | 'duplicate_identity'>
  readonly reason: string
  readonly evidence: Condition['evidence']
}

/** `known`: the condition is set already, and another entry would only grow the journal. */
export const decideSecondHolder = (facts: SecondHolderFacts): NodeDecided | { readonly kind: 'known' } => {
  const { node, condition, evidence, by, nowMs } = facts
  const { membership, id, epoch } = node.value
  if (membership.kind === 'revoked' || hasCondition(node.value, condition)) return { kind: 'known' }
  const reason = boundedText(facts.reason)
  const raised = { name: condition, sinceMs: nowMs, reason, evidence }
  return nodeDecided(node, { ...node.value, conditions: withCondition(node.value.conditions, raised) }, [
    entry(by, nowMs, 'node.second_holder', { node: id, epoch }, { condition, reason, ...evidence }),
  ])
}

/** Both lose the certificates, and the recovery credential with them: both hold it. */
const fenced = (facts: DuplicateFacts): DuplicateVerdict => {
  const { node, domain, nowMs } = facts
  const { value } = node
  const by = { ...facts.by, actor: 'system:lineage' }
  const { reason, evidence } = suspicionOf(facts)
  const why = `two holders of one identity: ${reason}`
  const quarantined = quarantinedNode(value, why, by, nowMs)
  const fencedNode: Node = {
    ...quarantined,
    recovery: null,
    conditions: withCondition(quarantined.conditions, {
      name: 'duplicate_identity',
      sinceMs: nowMs,
      reason,
      evidence,
    }),
  }
  const denial = denialOfEpoch(value, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why,
    reason: 'key-compromise',
  })
  const about = { node: value.id, epoch: value.epoch }
  const { change } = nodeDecided(
    node,
    fencedNode,
    [
      entry(facts.by, nowMs, 'node.second_holder', about, { condition: 'duplicate_identity', reason, ...evidence }),
      entry(by, nowMs, 'node.quarantined', about, { reason: why, was: value.membership.kind }),
      ...drainEnded(value, by, nowMs),
    ],
    {
      reads: [readOf('domain', 'domain', domain), readOf('profile', facts.profile.value.name, facts.profile)],
      writes: denial === null ? [] : [{ put: 'denial', value: denial }],
    },
  )
  const refusal = refuse('DUPLICATE_IDENTITY', 'both holders are fenced until an operator decides')
  return { kind: 'fenced', refusal, change, fence: { node, by, nowMs, why } }
}

/** Both holders in few words: a condition has room for eight facts. */
export const suspicionOf = (
  facts: Pick<DuplicateFacts, 'node' | 'sign' | 'claimant' | 'otherHolder' | 'lastSeen'>,
): Suspicion => {
  const { node, claimant, otherHolder, lastSeen } = facts
  const other = otherHolder ?? lastSeen
  const slots = slotsOf(node.value)
  return {
    reason: reasons[facts.sign],
    evidence: {
      claimant: whereabouts(claimant),
      claimant_hardware: machineWords(claimant),
      claimant_serial: claimant.serial,
      holder:
        other === null ? 'not connected' : `${whereabouts(other)}${otherHolder === null ? ', not connected' : ''}`,
      holder_hardware: other === null ? boundedText(hardwareWords(node.value.hardware), 128) : machineWords(other),
      holder_serial: other?.serial ?? slots?.current.serial ?? null,
    },
  }
}

/** One holder, as the journal names it: evidence of the machine before evidence of the process. */
export const holderWords = (holder: HolderFacts): readonly string[] => [
  holder.source ?? 'an unknown address',
  machineWords(holder),
  ...processWords(holder),
  ...(holder.serial === null ? [] : [`certificate ${holder.serial}`]),
]

const prefix = (text: string): string => text.slice(0, 8)

const whereabouts = (holder: HolderFacts): string =>
  boundedText([holder.source ?? 'an unknown address', ...processWords(holder)].join(', '), 100)

const processWords = ({ instance, agentVersion }: HolderFacts): readonly string[] => [
  instance === null || isSourceProcess(instance) ? 'an agent without an instance' : `instance ${prefix(instance)}`,
  ...(agentVersion === null ? [] : [`agent ${boundedText(agentVersion, 32)}`]),
]

/** The machine and its serial first: where there are many addresses they are what is cut. */
const machineWords = ({ machine, bmcSerial, macs }: HolderFacts): string =>
  boundedText(
    [
      ...(machine === null ? [] : [`machine ${prefix(machine)}`]),
      ...(bmcSerial === null ? [] : [`BMC serial ${boundedText(bmcSerial, 48)}`]),
      ...macs,
    ].join(', ') || 'nothing reported',
    128,
  )
