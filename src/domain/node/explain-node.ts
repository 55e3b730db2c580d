// `node show` in sentences: why the node is in its state, since when, by whom, what happens next, and which command
// changes it.

import { isoTime } from '#platform/clock.ts'
import { approvalComplete, approvalsNeeded } from '#domain/core/approval.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { durationWords } from '#domain/core/in-words.ts'
import { explainCondition } from './explain-condition.ts'
import { afterExpiry, denialSentences, readmission, repairSentences } from './explain-recovery.ts'
import type { FormerRevocation, Node, Slots } from '#domain/core/node.ts'
import { unavailableMethods, type Profile } from '#domain/core/profile.ts'
import { nextCommands } from './next-commands.ts'
import { releasedAfterRepair } from '#domain/recovery/repair.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'

export type ExplainFacts = {
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly channelOpen: boolean
  readonly lastSeenMs: number | null
  readonly nowMs: number
}

export const explainNode = (facts: ExplainFacts): string[] =>
  facts.node.unreadable === undefined
    ? [
        ...membershipSentences(facts),
        ...facts.node.conditions.map((condition) => explainCondition(facts, condition)),
        ...schedulingSentences(facts.node),
      ]
    : unreadableSentences(facts.node, facts.node.unreadable)

const unreadableSentences = ({ id }: Node, what: string): string[] => [
  `Its row in the database cannot be read (${what}): it is shut out, and the rest of what is shown here may be missing or wrong.`,
  'Find out who or what writes to the database, and put the row back from a backup while the plane is stopped.',
  `Without one: muster node revoke ${id} ends its certificates and keys, as far as they are on record. Only if it is to come back and was not revoked before: muster node quarantine ${id} keeps it, to be released and joined anew.`,
]

const membershipSentences = (facts: ExplainFacts): string[] => {
  const { node, domain, nowMs } = facts
  const { membership } = node
  const since = `since ${isoTime(membership.sinceMs)} (${durationWords(nowMs - membership.sinceMs)})`
  switch (membership.kind) {
    case 'registered':
      return [
        `Registered ${since} by ${node.registeredBy}; no certificate has been issued to it${node.epoch === 0 ? '' : ' since'}.`,
        howToJoin(facts),
      ]
    case 'enrolled':
      return [
        `Enrolled ${since}: its certificate has been issued and not been used yet.`,
        `It becomes active at the first use of that certificate; after ${durationWords(domain.stuckEnrollmentMs)} it counts as stuck.`,
        `If the machine lost its key: ${readmission(facts)}.`,
      ]
    case 'active':
      return [
        `Active ${since}.`,
        presence(facts),
        renewal(facts, membership.slots),
        ...unlessExpired(facts, membership.slots),
      ]
    case 'inactive':
      return membership.slots === null
        ? [
            `Inactive ${since}: it was released from quarantine, and the certificates it had stay withdrawn.`,
            released(facts),
          ]
        : [whyInactive(facts, since), comeback(facts, membership.slots), ...unlessExpired(facts, membership.slots)]
    case 'quarantined':
      return [
        `In quarantine ${since}, put there by ${membership.by}: ${membership.reason}.`,
        ...(membership.revokedBefore === undefined
          ? repairSentences(facts, membership.slots !== null)
          : formerSentences(node.id, membership.revokedBefore)),
      ]
    case 'revoked':
      return [
        `Revoked ${since} by ${membership.by}: ${membership.reason}.`,
        `Its certificates are withdrawn and its keys banned for good. To let the machine back in: ${returnOf(facts)}.`,
      ]
  }
}

const returnOf = ({ node, profile, nowMs }: ExplainFacts): string => nextCommands(node, profile, nowMs).join(', then ')

const formerSentences = (id: string, { by, reason, atMs }: FormerRevocation): string[] => [
  `The journal says that ${by} revoked it at ${isoTime(atMs)}: ${reason}. To revoke it again: muster node revoke ${id} --reason REASON.`,
  `Only if you know better: muster node release ${id} lets the machine join anew.`,
]

const whyInactive = (facts: ExplainFacts, since: string): string =>
  releasedAfterRepair(facts.node)
    ? `Inactive ${since}: it was repaired and released from quarantine.`
    : `Inactive ${since}: it had no channel for ${durationWords(facts.domain.livenessGraceMs)}. ${lastSeen(facts)}`

const presence = (facts: ExplainFacts): string => {
  if (facts.channelOpen) return 'Its channel is open.'
  const grace = durationWords(facts.domain.livenessGraceMs)
  return `It has no channel. ${lastSeen(facts)} It becomes inactive when it has been away for ${grace}.`
}

const lastSeen = ({ lastSeenMs, nowMs }: ExplainFacts): string =>
  lastSeenMs === null ? 'It has never been seen.' : `It was last seen ${durationWords(nowMs - lastSeenMs)} ago.`

const renewal = (facts: ExplainFacts, { current, pending }: Slots): string => {
  const { nowMs } = facts
  const { certificate } = facts.profile
  if (pending !== null) {
    return `A renewed certificate has been issued and waits for its first use; the current one is good until ${isoTime(current.notAfterMs)}.`
  }
  if (nowMs >= current.notAfterMs) {
    return `Its certificate expired at ${isoTime(current.notAfterMs)}; ${afterExpiry(facts)}.`
  }
  const dueMs = current.issuedAtMs + certificate.renewTo * (current.notAfterMs - current.issuedAtMs)
  const renews = nowMs < dueMs ? `its agent renews it by ${isoTime(dueMs)}` : 'its renewal is overdue'
  return `Its certificate is good until ${isoTime(current.notAfterMs)}; ${renews}.`
}

const isExpired = ({ current, pending }: Pick<Slots, 'current' | 'pending'>, nowMs: number): boolean =>
  nowMs >= Math.max(current.notAfterMs, pending === null ? 0 : pending.notAfterMs)

/** For an expired certificate, the sentence about it has already named an operator's denial of recovery. */
const unlessExpired = (facts: ExplainFacts, slots: Slots): string[] =>
  isExpired(slots, facts.nowMs) ? [] : denialSentences(facts)

const comeback = (facts: ExplainFacts, { current, pending }: Slots): string => {
  const { node, profile, nowMs } = facts
  const expired = isExpired({ current, pending }, nowMs)
  if (releasedAfterRepair(node) && !expired) return 'It becomes active when it connects.'
  switch (profile.comeback.by) {
    case 'join':
      return `Under profile ${profile.name} it has to join again. ${howToJoin(facts)}`
    case 'approve':
      if (!approvalComplete(node, profile)) return approvalMissing(facts)
      return expired
        ? `Its return is approved, but its certificate has expired: ${afterExpiry(facts)}.`
        : 'Its return is approved: it becomes active when it connects.'
    case 'certificate':
      return expired
        ? `Its certificate has expired: ${afterExpiry(facts)}.`
        : 'It becomes active again when it connects.'
  }
}

const approvalMissing = ({ node, profile }: ExplainFacts): string => {
  const given = node.approvals.map(({ by }) => by).join(', ') || 'nobody'
  const people = approvalsNeeded(profile)
  return `Profile ${profile.name} asks ${people === 1 ? 'one person' : `${people} people`} to approve its return; so far ${given} did: muster node approve ${node.id}.`
}

/** Its epoch is denied for good; what it recovers with is not. */
const released = (facts: ExplainFacts): string => {
  const { node, profile } = facts
  const recovers = node.recovery !== null && profile.recovery.mode !== 'deny' && approvalComplete(node, profile)
  return recovers ? `Its machine comes back in a new epoch: ${afterExpiry(facts)}.` : howToJoin(facts)
}

/** How a machine without a certificate gets one. */
const howToJoin = (facts: ExplainFacts): string => {
  const { node, profile } = facts
  if (node.membership.kind === 'inactive' && !approvalComplete(node, profile)) return approvalMissing(facts)
  const unavailable = unavailableMethods(profile)
  if (unavailable.length > 0)
    return `Profile ${profile.name} asks for ${profile.join.allOf.join(' and ')}, and no agent can join by ${unavailable.join()} yet.`
  return profile.join.allOf.includes('token')
    ? `It joins with a token: muster token create --node ${node.id}.`
    : `It joins automatically when a machine shows its ${profile.join.allOf.join(' and ')} identity.`
}

const whenDrained = ({ id, allocations }: Node): string =>
  allocations === 0
    ? `When nothing runs on it any more: muster node drain ${id} --done`
    : `It is drained once its owners have released ${allocations === 1 ? 'the allocation' : `the ${allocations} allocations`} on it: muster allocation list --node ${id}`

const schedulingSentences = (node: Node): string[] => {
  const { state, reasons } = schedulingOf(node)
  switch (state) {
    case 'schedulable':
      return [`Work may be placed on it (vCluster ${node.assignment}).`]
    case 'draining':
      return [
        `It is draining: nothing new is placed on it. ${whenDrained(node)}; to stop draining: muster node undrain ${node.id}.`,
      ]
    case 'drained':
      return [`It is drained: nothing runs on it. To use it again: muster node undrain ${node.id}.`]
    case 'unavailable':
      return [`Not schedulable: ${reasons.join('; ')}.`]
  }
}
