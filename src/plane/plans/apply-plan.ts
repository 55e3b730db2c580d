// Carries out a plan. It is marked as applied first, so that one of two callers does; a node that has changed after all is left
// alone and reported, a line each.

import type { Attribution, Row } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { decommissioningOf, revocationOf, unassignmentOf, versionFact } from '#domain/plans/plan-effects.ts'
import {
  changesSince,
  decideApplyPlan,
  planUnfit,
  type Plan,
  type PlanAction,
  type PlanEffect,
} from '#domain/plans/plan.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { changeProfile } from '#plane/settings/policy-routes.ts'
import { deleteVCluster } from '#plane/fleet/change-vclusters.ts'
import { commitDecision, type OnlyIf } from '#plane/core/commit-decision.ts'
import { changeAsPlanned } from './change-nodes.ts'
import { effectsOf, type OtherAction, type PlanCore } from './compute-plan.ts'
import { declareDocument, withSteps } from './declare-document.ts'
import { beginRollout, countedRuns, keysOfRollout, notApproved } from './create-tasks.ts'
import { barredForApplier, type TasksAction } from '#domain/plans/rollout-effects.ts'
import type { DocumentBody } from '#wire/plans/document-api.ts'
import type { PlaneNames } from '#plane/settings/plane-names.ts'
import type { TaskSignersHere } from '#plane/tasks/task-signers.ts'
import { revokeToken } from '#plane/enrollment/token-routes.ts'
import { withdrawAuthority } from '#plane/ca/withdraw-authority.ts'
import { purgeNode } from '#plane/revocation/purge-node.ts'
import { withdrawIdentity } from '#plane/revocation/withdraw-identity.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import type { Receipts } from '#plane/revocation/receipts.ts'

export type PlanParts = {
  readonly authority: Pick<Authority, 'withdraw' | 'rotate' | 'longestLeafMs'>
  readonly channels: OpenChannels
  readonly peers: PeerProofs
  readonly receipts: Pick<Receipts, 'collect'>
  readonly planeNames: PlaneNames
  readonly taskSigners: Pick<TaskSignersHere, 'stored' | 'rotate' | 'withdraw'>
}

/** What became of one of those it concerns. */
export type StepDone = {
  readonly subject: string
  readonly outcome: { readonly kind: 'done'; readonly receipt: Receipt | null } | Refusal
}

export type Applied = { readonly kind: 'applied'; readonly plan: Plan; readonly steps: readonly StepDone[] }

/** `key`: the id of the key that it is done with. */
export type Applier = { readonly by: Attribution; readonly key: string }

export const applyPlan = async (
  core: PlanCore,
  parts: PlanParts,
  id: string,
  applier: Applier,
  onStep: () => void = () => {},
): Promise<Applied | Refusal> => {
  const { by } = applier
  const marked = await commitDecision(core, async () => {
    const plan = await core.store.get('plan', id)
    const unfit = planUnfit(plan, core.clock.nowMs())
    if (unfit !== null || plan === null) return unfit ?? refuse('PLAN_NOT_FOUND', id)
    const { action } = plan.value
    if (action.kind === 'apply-document') return applyDocument(core, parts, { plan, action }, by)
    if (action.kind === 'create-tasks') return applyTasks(core, parts, { plan, action }, applier)
    const now = await effectsOf(core, parts, action)
    if (isRefusal(now)) return now
    const verdict = decideApplyPlan({ plan, now, by, nowMs: core.clock.nowMs() })
    return isRefusal(verdict)
      ? verdict
      : { ...verdict, carryOut: () => stepsOf(core, parts, { action, effects: now }, by, onStep) }
  })
  if (isRefusal(marked)) return marked
  const { plan, carryOut } = marked
  return { kind: 'applied', plan, steps: await carryOut() }
}

type TasksPlan = { readonly plan: Row<Plan>; readonly action: TasksAction }

const applyTasks = async (core: PlanCore, parts: PlanParts, { plan, action }: TasksPlan, { by, key }: Applier) => {
  // Before the effects: what is queued meanwhile, or a key that is revoked, makes this commit lose its race.
  const counted = await countedRuns(core, action)
  const appliedBy = { kind: 'operator', id: key } as const
  const keys = await keysOfRollout(core, action, appliedBy)
  if (isRefusal(keys)) return keys
  const unapproved = await notApproved(core, plan.value, appliedBy)
  if (unapproved !== null) return unapproved
  const now = await effectsOf(core, parts, action)
  if (isRefusal(now)) return now
  if (action.queuedBy.id !== key) {
    const own = await effectsOf(core, parts, { ...action, queuedBy: appliedBy })
    const barred = isRefusal(own) ? own : barredForApplier(now, own)
    if (barred !== null) return barred
  }
  const { id } = plan.value
  const facts = { plan, action, now, appliedBy, reads: keys.reads, ...counted }
  const begun = beginRollout(facts, by, by.correlation ?? id, core.clock.nowMs())
  const carryOut = async (): Promise<readonly StepDone[]> => one(`rollout ${id}`, null)
  return isRefusal(begun) ? begun : { ...begun, carryOut }
}

type DocumentPlan = {
  readonly plan: Row<Plan>
  readonly action: Extract<PlanAction, { kind: 'apply-document' }>
}

/** All of it is in the commit that marks the plan as applied. */
const applyDocument = async (
  core: PlanCore,
  { authority }: PlanParts,
  { plan, action }: DocumentPlan,
  by: Attribution,
) => {
  // Its request was held against the schema before it was kept.
  const asked = { document: action.document as DocumentBody, prune: action.prune }
  const declared = await declareDocument({ core, authority }, asked, by)
  if (isRefusal(declared)) return declared
  const verdict = decideApplyPlan({ plan, now: declared.effects, by, nowMs: core.clock.nowMs() })
  if (isRefusal(verdict)) return verdict
  const carryOut = async (): Promise<readonly StepDone[]> => declared.steps.flatMap(({ subject }) => one(subject, null))
  return { ...verdict, change: withSteps(verdict.change, declared.steps), carryOut }
}

const stepsOf = async (
  core: PlanCore,
  parts: PlanParts,
  { action, effects }: { readonly action: Exclude<OtherAction, TasksAction>; readonly effects: readonly PlanEffect[] },
  by: Attribution,
  onStep: () => void,
): Promise<readonly StepDone[]> => {
  const { authority, channels } = parts
  switch (action.kind) {
    case 'revoke-nodes':
    case 'decommission-nodes':
      return ofNodes(core, parts, action, effects, by, onStep)
    case 'purge-nodes':
      return ofPurge(core, action, effects, by, onStep)
    case 'change-nodes':
      return sideBySide(effects, (line) => changeAsPlanned(core, parts, nodeIn(line), action.change, line, by), onStep)
    case 'revoke-token':
      return one(`token ${action.token}`, await revokeToken(core, action.token, by))
    case 'delete-vcluster': {
      const deletion = { force: true, onlyIf: onlyAsPlanned(effects, unassignmentOf) }
      const deleted = await deleteVCluster(core, action.vcluster, deletion, by)
      return one(`vcluster ${action.vcluster}`, deleted)
    }
    case 'change-profile':
      return one(
        `profile ${action.profile}`,
        await changeProfile(core, authority, action.profile, action.set, by, ({ version }) =>
          effects.some(({ facts }) => facts.includes(versionFact(version)))
            ? null
            : refuse('PLAN_STALE', `profile ${action.profile} has been changed meanwhile`),
        ),
      )
    case 'rotate-ca': {
      const { compromised, reason } = action
      if (compromised === null) return one('authority', await authority.rotate(by))
      return one(
        `authority ${compromised}`,
        await withdrawAuthority(core.feed, authority, channels, { issuer: compromised, reason, by }),
      )
    }
    case 'drop-name':
      return one(`name ${action.name}`, await parts.planeNames.drop(action.name, by))
    case 'rotate-signer':
      return one('signer', await parts.taskSigners.rotate('now', by))
    case 'withdraw-signer':
      return one(`signer ${action.key}`, await parts.taskSigners.withdraw(action, by))
  }
}

const one = (subject: string, outcome: unknown): readonly StepDone[] => [
  { subject, outcome: isRefusal(outcome) ? outcome : { kind: 'done', receipt: null } },
]

const nodeIn = ({ subject }: PlanEffect): string => subject.slice('node '.length)

/** `lineNow`: what would become of it now. */
const onlyAsPlanned = (effects: readonly PlanEffect[], lineNow: (node: Node) => PlanEffect): OnlyIf => {
  const planned = new Map(effects.map((line) => [line.subject, line]))
  return (node) => {
    const now = lineNow(node)
    const line = planned.get(now.subject)
    const changes = changesSince(line === undefined ? [] : [line], [now])
    return changes.length === 0 ? null : refuse('PLAN_STALE', changes.join('; '))
  }
}

/** One after the other: each reads all that is known of its node. */
const ofPurge = async (
  core: PlanCore,
  { nodes, reason }: Extract<PlanAction, { kind: 'purge-nodes' }>,
  effects: readonly PlanEffect[],
  by: Attribution,
  onStep: () => void,
): Promise<readonly StepDone[]> => {
  const steps: StepDone[] = []
  const factsOf = new Map(effects.map((line) => [line.subject, line.facts]))
  for (const id of new Set(nodes)) {
    const subject = `node ${id}`
    const facts = factsOf.get(subject) ?? []
    const outcome = await purgeNode(core, id, reason, by, ({ version }) =>
      facts.includes(versionFact(version)) ? null : refuse('PLAN_STALE', `${subject} has been changed meanwhile`),
    )
    steps.push(...one(subject, outcome))
    onStep()
  }
  return steps
}

type NodesAction = Extract<PlanAction, { kind: 'revoke-nodes' | 'decommission-nodes' }>

/** Side by side, so that they share commit groups and no withdrawal waits for the peers of another. */
const atOnce = 16

const ofNodes = async (
  core: PlanCore,
  parts: PlanParts,
  action: NodesAction,
  effects: readonly PlanEffect[],
  by: Attribution,
  onStep: () => void,
): Promise<readonly StepDone[]> => {
  const onlyIf = onlyAsPlanned(effects, (node) =>
    action.kind === 'revoke-nodes' ? revocationOf(node) : decommissioningOf(node, action.force),
  )
  const step = async (id: string): Promise<StepDone> => {
    const withdrawal =
      action.kind === 'revoke-nodes'
        ? ({ kind: 'revoke', reason: action.reason, reasonCode: action.reasonCode ?? 'unspecified' } as const)
        : ({ kind: 'decommission', force: action.force } as const)
    const done = await withdrawIdentity(core, parts, id, withdrawal, by, onlyIf)
    return {
      subject: `node ${id}`,
      outcome: isRefusal(done) ? done : { kind: 'done', receipt: done.receipt },
    }
  }
  return sideBySide([...new Set(action.nodes)], step, onStep)
}

const sideBySide = async <T>(
  items: readonly T[],
  step: (item: T) => Promise<StepDone>,
  onStep: () => void,
): Promise<readonly StepDone[]> => {
  const counted = async (item: T): Promise<StepDone> => {
    const done = await step(item)
    onStep()
    return done
  }
  const steps: StepDone[] = []
  for (let start = 0; start < items.length; start += atOnce) {
    steps.push(...(await Promise.all(items.slice(start, start + atOnce).map(counted))))
  }
  return steps
}
