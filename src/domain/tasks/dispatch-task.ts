// The one step from `queued` to `dispatched`. It relies on every row that could forbid it, so that a revocation, a quarantine, a halt,
// an ended key or a changed policy that is committed before it wins, and of several planes one dispatches.

import { forgedWords, readOf, type Row } from '#domain/core/change.ts'
import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, Slot } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { cancelled, epochEnd, expired } from './end-task.ts'
import { signersKey, signingOf, type TaskSigners } from './signers.ts'
import { mostDispatched, mostDispatchedOfWorkers, type Claimed, type Lane, type TaskLine } from './task.ts'
import { inState, taskStep, type TaskDecided, type TaskFacts } from './task-change.ts'
import { mayQueue, type OnRecord, type TaskGround } from './task-policy.ts'

export type DispatchFacts = TaskFacts & {
  readonly node: Row<Node>
  readonly vcluster: Row<TaskGround> | null
  readonly domain: Row<DomainSettings>
  readonly queuer: OnRecord
  /** Who asks for it. */
  readonly principal: NodePrincipal
  /** The one of them that signs now is going to sign its envelope. */
  readonly signers: Row<TaskSigners>
}

/** `waits`: nothing is to be written, and there is nothing for this caller now. */
export type DispatchVerdict = TaskDecided | { readonly kind: 'waits'; readonly why: string }

export const decideDispatch = (facts: DispatchFacts): DispatchVerdict => {
  const { task: row, line, node, principal, signers, by, nowMs } = facts
  const task = row.value
  if (task.state.kind !== 'queued') return waits('it is not to be dispatched')
  const slot = slotOfCaller(node.value, principal)
  if (slot === null) return waits('the caller does not hold the identity of the node')
  const over = epochEnd(node.value, task.epoch)
  const byPlane = { ...facts, by: { actor: 'system:tasks', source: null, correlation: null } }
  if (task.forged) return cancelled(byPlane, forgedWords)
  if (over !== null) return cancelled(byPlane, over)
  if (nowMs >= task.expiresAtMs) return expired(byPlane)
  const stopped = stoppedBy(facts.domain.value)
  if (stopped !== null) return waits(stopped)
  const forbidden = forbiddenNow(facts)
  if (forbidden !== null) return cancelled(byPlane, forbidden)
  const before = line === null ? 0 : line.value.dispatched
  if (before >= mostDispatched) return waits(`${mostDispatched} tasks of this node are under way`)
  if (task.queuedBy.kind === 'worker' && isFullOfWorkers(line))
    return waits(`${mostDispatchedOfWorkers} tasks of workers are under way on this node`)
  const signing = signingOf(signers.value)
  if (signing === null || signers.value.forged) return waits('no task signer signs')
  const signer = signing.key
  const counter = (line === null ? 0 : line.value.counter) + 1
  const claimed: Claimed<'dispatched'> = {
    kind: 'dispatched',
    dispatchedAtMs: nowMs,
    epoch: principal.epoch,
    fingerprint: slot.sha256,
    signer,
    counter,
    issuedAtMs: nowMs,
  }
  return taskStep({
    ...{ from: row, task: inState(task, claimed), line, counter, by, nowMs, type: 'task.dispatched' },
    body: { fingerprint: slot.sha256, signer, counter },
    reads: [
      readOf('node', task.node, node),
      readOf('domain', 'domain', facts.domain),
      readOf('task-signers', signersKey, signers),
      ...(node.value.assignment === null ? [] : [readOf('vcluster', node.value.assignment, facts.vcluster)]),
      ...facts.queuer.reads,
    ],
  })
}

/**
 * In which lane the next task of a node is looked for, and in which one if there is none: an operator's waits behind one task of a worker
 * at most. What the line counts says no more than where to look first.
 */
export const lanesInTurn = (line: Row<TaskLine> | null): readonly Lane[] => {
  if (line === null) return ['operator', 'worker']
  if (isFullOfWorkers(line)) return ['operator']
  const { queued, queuedOf, lastOf } = line.value
  const ofWorkers = Object.values(queuedOf).reduce((sum, count) => sum + count, 0)
  const isTurnOfWorkers = ofWorkers > 0 && (lastOf === 'operator' || queued <= ofWorkers)
  return isTurnOfWorkers ? ['worker', 'operator'] : ['operator', 'worker']
}

const isFullOfWorkers = (line: Row<TaskLine> | null): boolean =>
  line !== null && line.value.dispatchedOfWorkers >= mostDispatchedOfWorkers

/** Null: the caller holds no certificate of the node as it is now, or one that may only show evidence. */
const slotOfCaller = (node: Node, { id, epoch, credential, evidenceOnly }: NodePrincipal): Slot | null => {
  const slots = slotsOf(node)
  if (slots === null || evidenceOnly || node.id !== id || node.epoch !== epoch) return null
  return (
    everySlot(slots).find(({ issuer, serial }) => issuer === credential.issuer && serial === credential.serial) ?? null
  )
}

/** Null: nothing stops it. What waits is dispatched when the stop is over, and what was dispatched is not sent again before that. */
export const stoppedBy = ({ issuance, continuity }: Pick<DomainSettings, 'issuance' | 'continuity'>): string | null => {
  if (issuance.kind === 'halted') return 'an operator has halted issuance'
  return continuity.doubt === null ? null : 'the store is in doubt'
}

/** Why it may not be queued any more; null: it may. */
const forbiddenNow = ({ task, node, vcluster, domain, queuer }: DispatchFacts): string | null => {
  if (typeof queuer.caller === 'string') return queuer.caller
  const no = mayQueue({
    caller: queuer.caller,
    node: node.value,
    vcluster: vcluster === null ? null : vcluster.value,
    domain: domain.value,
    type: task.value.type,
  })
  return no === null ? null : `it is not allowed any more: ${no.detail ?? no.code}`
}

const waits = (why: string): DispatchVerdict => ({ kind: 'waits', why })
