// Changes to many nodes: what each would do is what the rule of its own call decides on a snapshot, and it is carried out by the same
// rule.

import type { Attribution, NodeDecided, Row } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { Node } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideMachineReport } from '#domain/fleet/hardware-rules.ts'
import { decideProvisioning } from '#domain/fleet/provisioning.ts'
import { decideScrapeAddress } from '#domain/node/scrape-address.ts'
import { changeOf, type NodeChange } from '#domain/plans/node-change.ts'
import { factsOf } from '#domain/plans/plan-effects.ts'
import { changesSince, type PlanEffect } from '#domain/plans/plan.ts'
import { decideQuarantine } from '#domain/revocation/quarantine.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import { decideAssignment } from '#plane/fleet/assign-node.ts'
import { decideTagging } from '#plane/fleet/change-hardware.ts'
import { decideReportedHealth } from '#plane/fleet/scheduling-routes.ts'
import { decideAction, decideSettling } from '#plane/node/operator-node-actions.ts'
import { withdrawIdentity, type WithdrawParts } from '#plane/revocation/withdraw-identity.ts'
import type { StepDone } from './apply-plan.ts'

type ReadingCore = Pick<FlowCore, 'store' | 'clock'>
type Connections = Pick<OpenChannels, 'isConnected'>

/** Asks on behalf of no operator: what a plan shows does not depend on who looks. */
const planner: Attribution = { actor: 'system:plan', source: null, correlation: null }

export const effectOfChange = async (
  core: ReadingCore,
  channels: Connections,
  node: Row<Node>,
  change: NodeChange,
): Promise<PlanEffect> => lineFor(node.value, change, await decide(core, channels, node, change, planner))

const lineFor = (node: Node, change: NodeChange, verdict: NodeDecided | Unchanged | Refusal): PlanEffect => {
  if (isRefusal(verdict)) return changeOf(node, change, { kind: 'refused', refusal: verdict })
  return changeOf(node, change, { kind: verdict.kind === 'unchanged' ? 'unchanged' : 'changes' })
}

const decide = async (
  core: ReadingCore,
  channels: Connections,
  node: Row<Node>,
  change: NodeChange,
  by: Attribution,
): Promise<NodeDecided | Unchanged | Refusal> => {
  const facts = { node, by, nowMs: core.clock.nowMs() }
  switch (change.verb) {
    case 'drain':
    case 'drained':
    case 'undrain':
    case 'release':
    case 'approve':
    case 'deny':
      return decideAction(core, change.verb, facts)
    case 'assign':
    case 'move':
    case 'unassign':
      return decideAssignment(core, change, facts)
    case 'tag':
      return decideTagging(core, change, facts)
    case 'machine':
      return decideMachineReport({ ...facts, report: change.report })
    case 'provisioning': {
      const { state, detail } = change
      return decideProvisioning({ ...facts, report: state === null ? null : { state, detail } })
    }
    case 'health': {
      const { unhealthy: reason } = change
      const report =
        reason === null ? { state: 'healthy' as const } : { state: 'unhealthy' as const, reason, evidence: {} }
      return decideReportedHealth(core, report, facts)
    }
    case 'settle':
      return decideSettling(core, channels, { ...facts, reason: change.reason })
    case 'drop-scrape-address':
      return decideScrapeAddress({ ...facts, address: null })
    case 'quarantine':
      return decideQuarantine({ ...facts, reason: change.reason, domain: await domainSettingsRow(core.store) })
  }
}

/** `planned`: its line. What has changed since is left alone. */
export const changeAsPlanned = async (
  core: FlowCore,
  parts: WithdrawParts & { readonly channels: Connections },
  id: string,
  change: NodeChange,
  planned: PlanEffect,
  by: Attribution,
): Promise<StepDone> => {
  const { subject } = planned
  if (change.verb === 'quarantine') {
    const { reason } = change
    const onlyIf = (node: Node) => staleUnlessSame(planned, { ...planned, facts: factsOf(node) })
    const done = await withdrawIdentity(core, parts, id, { kind: 'quarantine', reason }, by, onlyIf)
    return { subject, outcome: isRefusal(done) ? done : { kind: 'done', receipt: done.receipt } }
  }
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = await decide(core, parts.channels, node, change, by)
    // The rule's own refusal says more than that the plan is stale.
    return isRefusal(verdict) ? verdict : (staleUnlessSame(planned, lineFor(node.value, change, verdict)) ?? verdict)
  })
  return { subject, outcome: isRefusal(done) ? done : { kind: 'done', receipt: null } }
}

const staleUnlessSame = (planned: PlanEffect, now: PlanEffect): Refusal | null => {
  const changes = changesSince([planned], [now])
  return changes.length === 0 ? null : refuse('PLAN_STALE', changes.join('; '))
}
