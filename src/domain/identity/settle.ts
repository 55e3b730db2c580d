// A duplicate was found and the holder is connected: operators say that the connected machine is the right one (ruling 6). This
// approves nothing that is asked later; should the other come again, that is recorded again.

import { peopleAsked } from '#domain/core/approval.ts'
import {
  readOf,
  type Row,
  boundedText,
  entry,
  nodeDecided,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { clearedEntry, hasCondition, withoutConditions } from '#domain/core/conditions.ts'
import type { Condition, ConditionName, Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type SettleFacts = NodeFacts & {
  readonly profile: Row<Profile>
  /** It has a channel open. */
  readonly connected: boolean
  readonly reason: string
}

const suspicions: readonly ConditionName[] = ['duplicate_identity', 'spoof_suspected']

/** Needs as many operators as the profile asks for a return. The evidence names those who have settled it so far. */
export const decideSettle = (facts: SettleFacts): NodeDecided | Refusal => {
  const { node, profile, reason, by, nowMs } = facts
  const { value } = node
  const unfit = notForSettling(facts)
  if (unfit !== null) return unfit
  const before = saidSoFar(value)
  if (before.includes(by.actor)) {
    return refuse('NODE_STATE_CONFLICT', `${by.actor} has settled ${value.id} already; another person has to as well`)
  }
  const said = [...before, by.actor]
  const needed = peopleAsked(profile.value)
  const complete = said.length >= needed
  const about = { node: value.id, epoch: value.epoch }
  const body = { reason: boundedText(reason), said: said.length, needed, complete, recovery_dropped: false }
  const extra = { reads: [readOf('profile', profile.value.name, profile)] }
  if (!complete) {
    const conditions = value.conditions.map((one) => (isSuspicion(one) ? saidBy(one, said) : one))
    return nodeDecided(node, { ...value, conditions }, [entry(by, nowMs, 'node.settled', about, body)], extra)
  }
  // The holder of a copied state folder has the registered credential, too. A caller that was only refused does not.
  const shared = hasCondition(value, 'duplicate_identity') && value.recovery !== null
  // That of the machine that is connected is known with its next renewal.
  const { reportedHardware: _former, ...chosen } = value
  const settled: Node = {
    ...chosen,
    conditions: withoutConditions(value.conditions, suspicions),
    ...(shared ? { recovery: null, rehearsal: null } : {}),
  }
  const entries = [
    entry(by, nowMs, 'node.settled', about, { ...body, recovery_dropped: shared }),
    ...value.conditions.filter(isSuspicion).map((condition) => clearedEntry(value, condition, by, nowMs)),
  ] as const
  return nodeDecided(node, settled, entries, extra)
}

const notForSettling = ({ node, connected }: SettleFacts): Refusal | null => {
  const { id, membership, conditions, recovery } = node.value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (membership.kind === 'quarantined') return refuse('NODE_QUARANTINED')
  if (!conditions.some(isSuspicion)) return refuse('NODE_STATE_CONFLICT', `${id} has no duplicate`)
  if (membership.kind !== 'active' || !connected) {
    return refuse('NODE_STATE_CONFLICT', `no machine is connected as ${id} that could be the right one`)
  }
  // It would be forgotten with the credential it is about.
  if (recovery !== null && recovery.denied !== null) {
    return refuse('NODE_STATE_CONFLICT', `${recovery.denied.by} said no to its recoveries; that is approved first`)
  }
  return null
}

/** The suspicion of a second holder, which only operators end. */
export const isSuspicion = ({ name }: Pick<Condition, 'name'>): boolean => suspicions.includes(name)

/** Names of operators have no spaces. */
const saidSoFar = ({ conditions }: Node): readonly string[] =>
  String(conditions.find(isSuspicion)?.evidence['settled_by'] ?? '')
    .split(' ')
    .filter((name) => name !== '')

const saidBy = (condition: Condition, said: readonly string[]): Condition => ({
  ...condition,
  evidence: { ...condition.evidence, settled_by: said.join(' ') },
})
