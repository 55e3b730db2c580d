// The values of the domain, as operators change them. Its name is in every certificate and never changes.

import { readOf, type Row } from './change.ts'
import { decided, entry, type Attribution, type Decided } from './decision.ts'
import type { DomainSettings } from './domain-settings.ts'
import { refuse, type Refusal } from './refusal.ts'
import { changesOf, oneOf, settingProblem, wholeNumber, withSetting, type Rules } from './settings-check.ts'

const hour = 3_600_000
const week = 7 * 24 * hour

const rulesWith = (profiles: readonly string[]): Rules => ({
  defaultProfile: oneOf(profiles),
  livenessGraceMs: wholeNumber(1000, week),
  strangersPerMinute: wholeNumber(1, 1_000_000),
  strangersPerMinutePerSource: wholeNumber(1, 1_000_000),
  clockToleranceMs: wholeNumber(0, 24 * hour),
  stuckEnrollmentMs: wholeNumber(1000, week),
  drainMs: wholeNumber(0, 24 * hour),
})

export type ChangeSettingsFacts = {
  readonly domain: Row<DomainSettings>
  /** The names of all profiles: they are never removed. */
  readonly profiles: readonly string[]
  readonly set: Readonly<Record<string, unknown>>
  readonly by: Attribution
  readonly nowMs: number
}

export const decideChangeSettings = (
  facts: ChangeSettingsFacts,
): (Decided & { readonly settings: DomainSettings }) | Refusal => {
  const { domain, set, by, nowMs } = facts
  const rules = rulesWith(facts.profiles)
  let settings = domain.value
  for (const [key, value] of Object.entries(set)) {
    if (key === 'name')
      return refuse('SETTING_INVALID', 'the name of a domain is in every certificate and never changes')
    const problem = settingProblem(rules, key, value)
    if (problem !== null) return refuse('SETTING_INVALID', problem)
    settings = withSetting(settings, key, value)
  }
  const body = { changes: changesOf(domain.value, settings, Object.keys(set)) }
  return {
    ...decided({
      reads: [readOf('domain', 'domain', domain)],
      writes: [{ put: 'domain', value: settings }],
      entries: [entry(by, nowMs, 'domain.changed', {}, body)],
    }),
    settings,
  }
}
