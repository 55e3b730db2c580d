// Each condition in a sentence: what it means, and what to do about it.

import { isoTime } from '#platform/clock.ts'
import { durationWords } from './duration-words.ts'
import type { Condition, ConditionName, Node } from './node.ts'

const advice: Readonly<Record<ConditionName, (id: string) => string>> = {
  stuck_enrollment: (id) =>
    `Look at the agent's log on the machine; if it lost its key, muster token create --node ${id}, else muster node revoke ${id} --reason REASON`,
  cert_expiring: (id) =>
    `Its agent should have renewed by now: see muster agent status on the machine and muster journal list --node ${id}`,
  cert_expired: (id) => `It can no longer renew and has to join again: muster token create --node ${id}`,
  spoof_suspected: (id) =>
    `Another machine may be trying to take its identity. If so: muster node quarantine ${id} --reason REASON; if the machine was replaced: muster token create --node ${id} --replace`,
  duplicate_identity: (id) =>
    `Two machines may hold its identity. Fence both with muster node quarantine ${id} --reason REASON, find the copy, then muster node release ${id}`,
  needs_approval: (id) => `It waits for people to approve it: muster node approve ${id}`,
  not_persisted: () =>
    'Its agent could not keep what it was given and keeps trying: see the disk and permissions of its state folder',
  clock_skew: () => 'Set the clock of the machine; certificates are judged by time',
  disk_full: () => 'Make room on the machine; it keeps its identity meanwhile',
  endpoint_profile_drift: () =>
    'It connects to other addresses than it was last given; it is told the right ones when it connects',
  node_observability_disk_pressure: () =>
    'Its disk is nearly full, so it writes no logs and records: make room on the machine',
  recovery_enrollment_blocked: (id) => `It cannot recover by itself: see muster node explain ${id}`,
  not_recoverable: (id) =>
    `Its last rehearsal failed, so it may not come back by itself: see muster node explain ${id}`,
}

export const explainCondition = (node: Node, condition: Condition, nowMs: number): string => {
  const evidence = Object.entries(condition.evidence).map(([name, value]) => `${name} ${value}`)
  const facts = evidence.length === 0 ? '' : ` (${evidence.join(', ')})`
  const since = `since ${isoTime(condition.sinceMs)}, ${durationWords(nowMs - condition.sinceMs)}`
  return `${condition.name} ${since}: ${condition.reason}${facts}. ${advice[condition.name](node.id)}.`
}
