import type { Attribution } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { decideChangeSettings } from '#domain/settings/settings-rules.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyRow } from '#plane/core/pages.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const changeSettings = async (
  deps: FlowCore,
  set: Readonly<Record<string, unknown>>,
  by: Attribution,
): Promise<{ readonly kind: 'written'; readonly settings: DomainSettings } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const domain = await domainSettingsRow(deps.store)
    const profiles = (await deps.store.profiles()).map(({ value }) => value.name)
    const addressesHeld = 'overlayPrefix' in set && (await anyAddressHeld(deps.store))
    return decideChangeSettings({ domain, profiles, addressesHeld, set, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'written', settings: done.settings }
}

/** One that is given to a node meanwhile is of the former prefix, and is replaced when the node next enrols. */
const anyAddressHeld = async (store: Pick<Store, 'list'>): Promise<boolean> => {
  for await (const { releasedAtMs } of everyRow(store, 'overlay-address', ({ address }) => address))
    if (releasedAtMs === null) return true
  return false
}
