// What a document would change, decided as a whole: every thing by the rules of its own routes, and all of it as one change.

import { withPart, type Attribution, type Change } from '#domain/core/change.ts'
import { decideKeepPlan, type Plan, type PlanEffect } from '#domain/plans/plan.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { hardwareProfiles, nodesWithTags } from '#plane/fleet/change-hardware.ts'
import { unusedTokens } from '#plane/settings/delete-profile.ts'
import type { LeafLimit } from '#plane/settings/policy-routes.ts'
import { sortableId } from '#platform/random.ts'
import { documentVersion, type DocumentBody } from '#wire/plans/document-api.ts'
import { documentKinds } from './document-kinds.ts'
import type { DocumentStep, Outlook, Reading } from './document-kind.ts'

export type Declaration = {
  readonly kind: 'declared'
  readonly steps: readonly DocumentStep[]
  readonly effects: readonly PlanEffect[]
  /** How many of the things that it declares are as it says. */
  readonly unchanged: number
}

export type DocumentAction = { readonly document: DocumentBody; readonly prune: boolean }

export const declareDocument = async (
  reading: Reading,
  { document, prune }: DocumentAction,
  by: Attribution,
): Promise<Declaration | Refusal> => {
  const outlook = await presentOutlook(reading, by)
  const steps: DocumentStep[] = []
  let unchanged = 0
  for (const kind of documentKinds) {
    const decided = await kind.decide(reading, document, outlook)
    if (isRefusal(decided)) return decided
    steps.push(...decided.filter((step) => step !== null))
    unchanged += decided.filter((step) => step === null).length
  }
  for (const kind of prune ? documentKinds.toReversed() : []) {
    const removed = await kind.prune(reading, document, outlook)
    if (isRefusal(removed)) return removed
    steps.push(...removed)
  }
  return { kind: 'declared', steps, effects: steps.flatMap(({ effects }) => effects), unchanged }
}

const presentOutlook = async ({ core: { store, clock } }: Reading, by: Attribution): Promise<Outlook> => ({
  by,
  nowMs: clock.nowMs(),
  profiles: new Map((await store.profiles()).map(({ value, version }) => [value.name, version])),
  hardware: new Map((await hardwareProfiles(store)).map((profile) => [profile.tag, profile])),
  nodesWithTags: once(() => nodesWithTags(store)),
  unusedTokens: once(() => unusedTokens({ store, clock })),
  domain: await domainSettingsRow(store),
})

const once = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let reading: Promise<T> | null = null
  return () => (reading ??= read())
}

/** One change with all of it behind what it begins with. */
export const withSteps = (change: Change, steps: readonly DocumentStep[]): Change => {
  const changes = [change, ...steps.map((step) => step.change)]
  return {
    ...steps.reduce((whole, step) => withPart(whole, step.change), change),
    unused: changes.flatMap(({ unused = [] }) => unused),
    soleTags: changes.flatMap(({ soleTags = [] }) => soleTags),
  }
}

/** What there is now, as a document that changes nothing. */
export const renderDocument = async (reading: Reading): Promise<DocumentBody> => {
  const sections: Record<string, unknown> = {}
  for (const kind of documentKinds) sections[kind.section] = await kind.render(reading)
  return { apiVersion: documentVersion, ...sections }
}

export type DocumentPlan = { readonly kind: 'planned'; readonly plan: Plan | null; readonly unchanged: number }

/** A document that changes nothing needs no plan. */
export const planDocument = async (
  core: FlowCore & Pick<Core, 'timers'>,
  authority: LeafLimit,
  action: DocumentAction,
  by: Attribution,
): Promise<DocumentPlan | Refusal> => {
  // Replicas of the release before do not know such plans.
  if (core.store.unfinishedUpgrade() !== null) return refuse('UPGRADE_UNFINISHED', 'a document is applied')
  const id = sortableId(core.clock.nowMs(), core.random)
  const done = await commitDecision(core, async () => {
    const declared = await declareDocument({ core, authority }, action, by)
    if (isRefusal(declared)) return declared
    const { effects, steps, unchanged } = declared
    if (steps.length === 0) return { kind: 'planned', plan: null, unchanged } as const
    const kept = { id, action: { kind: 'apply-document', ...action }, effects, by, nowMs: core.clock.nowMs() } as const
    return { ...decideKeepPlan(kept), unchanged }
  })
  return done.kind === 'committed' ? { kind: 'planned', plan: done.plan, unchanged: done.unchanged } : done
}
