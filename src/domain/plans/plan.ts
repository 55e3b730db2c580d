// What an action would do, computed before it is done. Applying a plan does what was shown, or is refused with what changed.

import type { RevocationReason } from '#domain/core/certificate.ts'
import type { IssuerId, NodeId } from '#domain/core/node.ts'
import type { NodeSelector } from '#domain/fleet/node-selector.ts'
import {
  readOf,
  type Row,
  boundedText,
  decided,
  entry,
  forgedWords,
  type Attribution,
  type Decided,
  type MayBeForged,
} from '#domain/core/change.ts'
import type { EntryBody } from '#domain/core/journal-entry.ts'
import type { Role } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { parametersInShort } from '#domain/tasks/task-change.ts'
import type { NodeChange } from './node-change.ts'

/**
 * With `select`, `nodes` are those that it selected when the plan was computed. It selects again when the plan is applied, so that a
 * set that has changed makes the plan stale.
 */
type OnNodes = { readonly nodes: readonly NodeId[]; readonly select?: NodeSelector }

export type PlanAction =
  /** `reasonCode`: left out in plans of releases before 0.4. */
  | ({ readonly kind: 'revoke-nodes'; readonly reason: string; readonly reasonCode?: RevocationReason } & OnNodes)
  | ({ readonly kind: 'decommission-nodes'; readonly force: boolean } & OnNodes)
  | ({ readonly kind: 'purge-nodes'; readonly reason: string } & OnNodes)
  | { readonly kind: 'change-nodes'; readonly select: NodeSelector; readonly change: NodeChange }
  | { readonly kind: 'revoke-token'; readonly token: string }
  | { readonly kind: 'delete-vcluster'; readonly vcluster: string }
  | { readonly kind: 'change-profile'; readonly profile: string; readonly set: Readonly<Record<string, unknown>> }
  /** `compromised`: the issuer to be dropped, with all its leaves; null: an ordinary rotation. */
  | { readonly kind: 'rotate-ca'; readonly compromised: IssuerId | null; readonly reason: string }
  /** A name that the plane served, and that its configuration has no longer. */
  | { readonly kind: 'drop-name'; readonly name: string }
  /** The next task signer signs at once. */
  | { readonly kind: 'rotate-signer' }
  | { readonly kind: 'withdraw-signer'; readonly key: string; readonly reason: string }
  /** One task for each of the nodes, a few at a time: a rollout with the id of the plan. `queuedBy`: who computed it. */
  | ({
      readonly kind: 'create-tasks'
      readonly type: string
      readonly parameters: Readonly<Record<string, unknown>>
      readonly lifeMs: number
      readonly concurrency: number
      readonly failureLimit: number
      readonly queuedBy: { readonly kind: 'operator'; readonly id: string }
    } & OnNodes)
  /** `document` as it was sent (wire/plans/document-api.ts). `prune`: what its sections leave out is deleted. */
  | { readonly kind: 'apply-document'; readonly document: object; readonly prune: boolean }

export const planActions = [
  'revoke-nodes',
  'decommission-nodes',
  'purge-nodes',
  'change-nodes',
  'revoke-token',
  'delete-vcluster',
  'change-profile',
  'rotate-ca',
  'drop-name',
  'rotate-signer',
  'withdraw-signer',
  'create-tasks',
  'apply-document',
] as const satisfies readonly PlanAction['kind'][]

/** One line: whom it concerns, what becomes of it, and the facts that follows from. Two are the same if all of it is. */
export type PlanEffect = {
  /** `node gpu-001`, `token 01J...`, `vcluster blue`, `profile gpu-cloud`, `authority ab12...`, `signer ab12...`, `nodes`, `task`, `name plane.example`, `domain`. */
  readonly subject: string
  readonly effect: string
  /** When access is lost; null: it is not. */
  readonly loses: 'at once' | 'at expiry' | null
  /** It cannot recover without an operator: what the operator would have to do. */
  readonly unrecoverable: string | null
  /** What the line was read from, in words: `active`, `3 allocations`, `assigned to blue`. */
  readonly facts: readonly string[]
}

export type Plan = MayBeForged & {
  readonly id: string
  readonly action: PlanAction
  readonly effects: readonly PlanEffect[]
  readonly by: string
  readonly computedAtMs: number
  readonly expiresAtMs: number
  readonly applied: { readonly by: string; readonly atMs: number } | null
}

export const planLifeMs = 3_600_000
/** Nodes one plan may name. */
export const mostPlanned = 500
/** Nodes one plan may select. */
export const mostSelected = 10_000

// A plan is kept as it was shown. It is applied once, by an authorised operator, and only if all of it is still true.

export type PlanDecided = Decided & { readonly plan: Plan }

export const decideKeepPlan = (facts: {
  readonly id: string
  readonly action: PlanAction
  readonly effects: readonly PlanEffect[]
  readonly by: Attribution
  readonly nowMs: number
}): PlanDecided => {
  const { id, action, effects, by, nowMs } = facts
  const plan: Plan = {
    ...{ id, action, effects, by: by.actor },
    computedAtMs: nowMs,
    expiresAtMs: nowMs + planLifeMs,
    applied: null,
  }
  return {
    ...decided({
      reads: [readOf('plan', id, null)],
      writes: [{ put: 'plan', value: plan }],
      entries: [
        entry(
          by,
          nowMs,
          'plan.computed',
          {},
          {
            ...{ plan: id, action: action.kind, lines: effects.length },
            ...whatWouldRun(action),
          },
        ),
      ],
    }),
    plan,
  }
}

/** The journal says what was planned also where the plan is never applied. */
const whatWouldRun = (action: PlanAction): EntryBody =>
  action.kind !== 'create-tasks'
    ? {}
    : {
        type: action.type,
        parameters: parametersInShort(action.parameters),
        ...{ life_ms: action.lifeMs, concurrency: action.concurrency, failure_limit: action.failureLimit },
      }

export type ApplyFacts = {
  readonly plan: Row<Plan> | null
  /** What the action would do now. */
  readonly now: readonly PlanEffect[]
  readonly by: Attribution
  readonly nowMs: number
}

/** The caller that gets this verdict carries the plan out; no other caller ever does. */
export const decideApplyPlan = ({ plan, now, by, nowMs }: ApplyFacts): PlanDecided | Refusal => {
  const unfit = planUnfit(plan, nowMs)
  if (unfit !== null || plan === null) return unfit ?? refuse('PLAN_NOT_FOUND')
  const changes = changesSince(plan.value.effects, now)
  if (changes.length > 0) return refuse('PLAN_STALE', listed(changes))
  const applied: Plan = { ...plan.value, applied: { by: by.actor, atMs: nowMs } }
  const { id, action } = applied
  return {
    ...decided({
      reads: [readOf('plan', id, plan)],
      writes: [{ put: 'plan', value: applied }],
      entries: [entry(by, nowMs, 'plan.applied', {}, { plan: id, action: action.kind, computed_by: applied.by })],
    }),
    plan: applied,
  }
}

/** Null: it can be applied, if nothing has changed. */
export const planUnfit = (plan: Row<Plan> | null, nowMs: number): Refusal | null => {
  if (plan === null || nowMs >= plan.value.expiresAtMs) return refuse('PLAN_NOT_FOUND')
  if (plan.value.forged) return refuse('PLAN_STALE', forgedWords)
  return plan.value.applied === null ? null : refuse('PLAN_USED', `by ${plan.value.applied.by}`)
}

/** In words, line by line; empty: all of it is still so. */
export const changesSince = (before: readonly PlanEffect[], now: readonly PlanEffect[]): readonly string[] => {
  const was = new Map(before.map((line) => [line.subject, line]))
  const is = new Map(now.map((line) => [line.subject, line]))
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((subject) => {
    const [then, today] = [was.get(subject), is.get(subject)]
    if (then === undefined) return [`${subject} is new: ${(today?.facts ?? []).join(', ')}`]
    if (today === undefined) return [`${subject} is not concerned any more`]
    return isSame(then, today) ? [] : [`${subject} ${difference(then, today)}`]
  })
}

const isSame = (one: PlanEffect, other: PlanEffect): boolean =>
  one.effect === other.effect &&
  one.loses === other.loses &&
  one.unrecoverable === other.unrecoverable &&
  one.facts.length === other.facts.length &&
  one.facts.every((fact, at) => fact === other.facts[at])

const difference = (then: PlanEffect, today: PlanEffect): string => {
  const gone = then.facts.filter((fact) => !today.facts.includes(fact))
  const fresh = today.facts.filter((fact) => !then.facts.includes(fact))
  if (gone.length + fresh.length === 0) return `had "${then.effect}", and would now have "${today.effect}"`
  return `was ${gone.join(', ') || 'less'}, and is ${fresh.join(', ') || 'not any more'}`
}

const mostListed = 5

const listed = (changes: readonly string[]): string => {
  const rest = changes.length - mostListed
  return boundedText([...changes.slice(0, mostListed), ...(rest > 0 ? [`and ${rest} more`] : [])].join('; '), 1000)
}

/** Who may do it without a plan may do it with one. */
export const roleFor = ({ kind }: PlanAction): Role => {
  switch (kind) {
    case 'revoke-nodes':
    case 'change-nodes':
    case 'revoke-token':
    case 'create-tasks':
      return 'operator'
    case 'decommission-nodes':
    case 'purge-nodes':
    case 'delete-vcluster':
    case 'change-profile':
    case 'rotate-ca':
    case 'drop-name':
    case 'rotate-signer':
    case 'withdraw-signer':
    case 'apply-document':
      return 'platform-admin'
  }
}
