import type { Attribution } from '#domain/decision.ts'
import type { DomainSettings } from '#domain/domain-settings.ts'
import type { Refusal } from '#domain/refusal.ts'
import { decideChangeSettings } from '#domain/settings-rules.ts'
import type { Store } from '#plane/store/store.ts'
import type { Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps } from './commit-decision.ts'
import { domainSettingsRow } from './domain-settings-row.ts'

export type SettingsDeps = CommitDeps & { readonly store: Store; readonly clock: Clock }

export const changeSettings = async (
  deps: SettingsDeps,
  set: Readonly<Record<string, unknown>>,
  by: Attribution,
): Promise<{ readonly kind: 'written'; readonly settings: DomainSettings } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const domain = await domainSettingsRow(deps.store)
    const profiles = (await deps.store.profiles()).map(({ value }) => value.name)
    return decideChangeSettings({ domain, profiles, set, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'written', settings: done.settings }
}
