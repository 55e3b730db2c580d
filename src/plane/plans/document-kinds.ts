// Every kind of thing that documents declare, in the order in which they are decided: a later one may rely on those before it. What is
// left out is deleted in the opposite order. A new one is an entry here, and a section in wire/plans/document-api.ts.

import { declaredOf } from '#domain/plans/plan-effects.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { decideChangeSettings, domainDocument, settingsOfDomain } from '#domain/settings/settings-rules.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { anyAddressHeld } from '#plane/settings/policy-routes.ts'
import { changesIn, soleKind, type DocumentKind } from './document-kind.ts'
import { hardwareProfileKind } from './hardware-profile-kind.ts'
import { issuerKind } from './issuer-kind.ts'
import { profileKind } from './profile-kind.ts'
import { vclusterKind } from './vcluster-kind.ts'
import { workerIssuerKind } from './worker-issuer-kind.ts'

const domainKind = soleKind({
  section: 'domain',
  nameOf: () => 'domain',
  read: async ({ core }) => [await domainSettingsRow(core.store)],
  render: domainDocument,
  parse: settingsOfDomain,
  async decide({ core }, set, outlook) {
    const row = await domainSettingsRow(core.store)
    const moves = 'overlayPrefix' in set && set['overlayPrefix'] !== row.value.overlayPrefix
    const addressesHeld = moves && (await anyAddressHeld(core.store))
    const { profiles, by, nowMs } = outlook
    const verdict = decideChangeSettings({ domain: row, profiles, addressesHeld, set, by, nowMs })
    if (isRefusal(verdict)) return verdict
    const changes = changesIn(verdict.change)
    if (changes.length === 0) return null
    outlook.domain = { value: verdict.settings, version: row.version }
    const effects = [declaredOf('domain', { effect: changes.join('; '), version: row.version })]
    return { subject: 'domain', effects, change: verdict.change }
  },
  remove: null,
})

export const documentKinds: readonly DocumentKind[] = [
  issuerKind,
  profileKind,
  domainKind,
  hardwareProfileKind,
  vclusterKind,
  workerIssuerKind,
]
