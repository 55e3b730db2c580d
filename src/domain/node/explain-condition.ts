// Each condition in a sentence: what it means, and what to do about it.

import { isoTime } from '#platform/clock.ts'
import { durationWords } from '#domain/core/in-words.ts'
import { afterExpiry, type RecoveryFacts } from './explain-recovery.ts'
import type { Condition, ConditionName } from '#domain/core/node.ts'
import { ownCheck } from '#domain/fleet/overlay-shown.ts'

type Advice = (id: string, facts: RecoveryFacts, condition: Condition) => string

const advice: Readonly<Record<ConditionName, Advice>> = {
  stuck_enrollment: (id) =>
    `Look at the agent's log on the machine; if it lost its key, muster token create --node ${id}, else muster node revoke ${id} --reason REASON`,
  cert_expiring: (id) =>
    `Its agent should have renewed by now and keeps trying: see muster agent explain on the machine and muster node explain ${id}`,
  cert_expired: (id, facts) =>
    facts.node.membership.kind === 'quarantined'
      ? `The certificate its repair gave it is of no use any more: muster node repair-bundle ${id} --reason REASON --out FILE`
      : `It can no longer renew: ${afterExpiry(facts)}`,
  spoof_suspected: (id, facts) =>
    `Another machine may be trying to take its identity. If so: muster node quarantine ${id} --reason REASON; if the machine was replaced: ${replacement(id, facts)}; if the one that is connected is the right one: muster node settle ${id} --reason REASON`,
  duplicate_identity: (id, facts) =>
    facts.node.membership.kind === 'quarantined'
      ? `Two machines may hold its identity, and both are fenced. Find the copy and end it; then let the right machine in: muster node repair-bundle ${id} --reason REASON --out FILE, or muster node release ${id} and ${joinsByToken(facts) ? `muster token create --node ${id}` : 'let it join by its hardware'}`
      : `Two machines may hold its identity. Find the copy and end it, then give the right machine a new identity: muster node repair-bundle ${id} --reason REASON --out FILE, or, installed anew, ${replacement(id, facts)}; if the one that is connected is the right one and the copy is gone for good: muster node settle ${id} --reason REASON; to fence both meanwhile: muster node quarantine ${id} --reason REASON`,
  needs_approval: (id) =>
    `It waits for people to approve it: muster node approve ${id}; to say no to its recovery: muster node deny ${id}`,
  not_persisted: () =>
    'Its agent could not keep what it was given and keeps trying: see the disk and permissions of its state folder',
  clock_skew: () =>
    'Set the clock of the machine; its agent judges certificates by the time of the plane meanwhile, and renews nothing because of the clock alone',
  disk_full: () => 'Make room on the machine; it keeps its identity meanwhile',
  endpoint_profile_drift: () =>
    'It reached the plane by another address than it was given, or met another name there; it gets the right ones when it connects: muster domain names list shows the names of the plane',
  node_observability_disk_pressure: () =>
    'Its disk is nearly full, so it writes no logs and records: make room on the machine',
  recovery_enrollment_blocked: (id) =>
    `It cannot recover without an operator: see muster node explain ${id}; to repair it under watch: muster node repair-bundle ${id} --reason REASON --out FILE`,
  unhealthy: (id, _facts, { evidence }) =>
    evidence[ownCheck] === undefined
      ? `A health report says so; once it is healthy again: muster node health ${id} --ok, or a new report of its reporter`
      : `A check of its vCluster says so, and it is over when that passes: see muster node show ${id}`,
  overlay_failed: () =>
    'What its vCluster asks for could not be put into force, and its agent keeps trying: see muster agent status on the machine',
  config_drift: (id) =>
    `What its vCluster asked for is no longer what is there: put it right on the machine, or let the agent do so with enforcementMode=enforce; see muster node show ${id}`,
  service_failed: (id, { node }) =>
    `Its agent keeps starting it: see muster node show ${id}, and its log on the machine; if the vCluster asks for the wrong thing: muster vcluster show ${node.assignment ?? 'NAME'}`,
  wireguard_failed: () =>
    'Its agent could not apply its WireGuard peers and keeps trying: see muster agent status on the machine',
  output_failed: () =>
    'A certificate for one of its programs could not be put in place, or its program was not reloaded. Its agent keeps trying: see muster agent status on the machine',
  active_elsewhere: () =>
    'Another domain says that this machine is active there. Advisory: find out which of the two is meant to have it',
  not_recoverable: (id) =>
    `It works now, and may not recover after a failure without an operator; it rehearses again automatically: see muster node explain ${id}`,
}

const joinsByToken = ({ profile }: RecoveryFacts): boolean => profile.join.allOf.includes('token')

const replacement = (id: string, facts: RecoveryFacts): string =>
  joinsByToken(facts)
    ? `muster token create --node ${id} --replace`
    : 'stop the one that is connected, and the other joins by its hardware'

export const explainCondition = (facts: RecoveryFacts, condition: Condition): string => {
  const evidence = Object.entries(condition.evidence).map(([name, value]) => `${name} ${value ?? 'unknown'}`)
  const known = evidence.length === 0 ? '' : ` (${evidence.join(', ')})`
  const since = `since ${isoTime(condition.sinceMs)}, ${durationWords(facts.nowMs - condition.sinceMs)}`
  return `${condition.name} ${since}: ${condition.reason}${known}. ${adviceFor(condition, facts)}.`
}

/** A replica of a later release may have raised one that this release does not know. */
const adviceFor = (condition: Condition, facts: RecoveryFacts): string =>
  Object.hasOwn(advice, condition.name)
    ? advice[condition.name](facts.node.id, facts, condition)
    : 'A later release raised it: a plane of that release says what to do'
