// The values of the domain, as operators change them. Its name is in every certificate and never changes.

import { approveRunAboveRule } from '#domain/core/task-types.ts'
import {
  readOf,
  type Read,
  type Row,
  boundedText,
  decided,
  entry,
  type Attribution,
  type Decided,
} from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { formatNetwork, inOneOf, networksOf, parseNetwork } from '#platform/ip-address.ts'
import { serviceOrNull } from '#domain/fleet/overlay.ts'
import { policyRules } from '#domain/fleet/policy.ts'
import { refuseField, type Refusal } from '#domain/core/refusal.ts'
import {
  changesOf,
  duration,
  oneOf,
  settingRefusal,
  settingsIn,
  settingsTree,
  wholeNumber,
  withSetting,
  yesOrNo,
  type Rule,
  type Rules,
  type Tree,
} from '#domain/core/settings-check.ts'

const hour = 3_600_000
const week = 7 * 24 * hour

const uniqueLocalOrGlobal = networksOf('fc00::/7 2000::/3')

/** Room for nodes, within the part of an address that a site may assign. */
const prefixOrNull: Rule = {
  takes:
    'null, or a unique local or global IPv6 prefix of /48 to /112 such as fd12:3456:789a::/64, written canonically',
  fits: (value) => {
    if (value === null) return true
    const network = typeof value === 'string' ? parseNetwork(value) : null
    if (network === null || formatNetwork(network) !== value || network.bits < 48 || network.bits > 112) return false
    return inOneOf(uniqueLocalOrGlobal, network.bytes)
  },
}

export const domainRules = (profiles: readonly string[]): Rules => ({
  defaultProfile: oneOf(profiles),
  livenessGraceMs: duration(1000, week),
  strangersPerMinute: wholeNumber(1, 1_000_000),
  strangersPerMinutePerSource: wholeNumber(1, 1_000_000),
  clockToleranceMs: duration(0, 24 * hour),
  stuckEnrollmentMs: duration(1000, week),
  drainMs: duration(0, 24 * hour),
  'maintenance.timeSync': serviceOrNull,
  ...policyRules('maintenance.policy'),
  overlayPrefix: prefixOrNull,
  programListMs: duration(hour, 400 * 24 * hour),
  'tasks.run': yesOrNo,
  'tasks.reboot': yesOrNo,
  'tasks.approveRunAbove': approveRunAboveRule,
})

/** The values of the domain as a document has them. */
export const domainDocument = (domain: DomainSettings): Tree => settingsTree(domainRules([]), domain)
export const settingsOfDomain = (document: Tree) => settingsIn(domainRules([]), document)

export type ChangeSettingsFacts = {
  readonly domain: Row<DomainSettings>
  /** Every profile there is, and the version of its row; 0: it is made in the same commit. */
  readonly profiles: ReadonlyMap<string, number>
  /** Whether a node has an address in the WireGuard network. */
  readonly addressesHeld: boolean
  readonly set: Readonly<Record<string, unknown>>
  readonly by: Attribution
  readonly nowMs: number
}

export const decideChangeSettings = (
  facts: ChangeSettingsFacts,
): (Decided & { readonly settings: DomainSettings }) | Refusal => {
  const { domain, set, by, nowMs } = facts
  const rules = domainRules([...facts.profiles.keys()])
  let settings = domain.value
  for (const [key, value] of Object.entries(set)) {
    if (key === 'name')
      return refuseField(
        'SETTING_INVALID',
        'set.name',
        'the name of a domain is in every certificate and never changes',
      )
    const no = settingRefusal('SETTING_INVALID', rules, key, value)
    if (no !== null) return no
    settings = withSetting(settings, key, value)
  }
  if (facts.addressesHeld && settings.overlayPrefix !== domain.value.overlayPrefix) {
    const detail = 'overlayPrefix stays as long as nodes have addresses in the WireGuard network'
    return refuseField('SETTING_INVALID', 'set.overlayPrefix', detail)
  }
  const body = { changes: changesOf(domain.value, settings, Object.keys(set)).map((line) => boundedText(line)) }
  return {
    ...decided({
      reads: [readOf('domain', 'domain', domain), ...defaultRead(facts, settings)],
      writes: [{ put: 'domain', value: settings }],
      entries: [entry(by, nowMs, 'domain.changed', {}, body)],
    }),
    settings,
  }
}

/** A profile that is deleted meanwhile does not become the default. */
const defaultRead = ({ set, profiles }: ChangeSettingsFacts, { defaultProfile }: DomainSettings): readonly Read[] =>
  'defaultProfile' in set ? [{ row: 'profile', key: defaultProfile, version: profiles.get(defaultProfile) ?? 0 }] : []
