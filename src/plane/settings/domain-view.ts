import type { Static } from 'typebox'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { DomainBody } from '#wire/api/operator-api.ts'
import { policyView, serviceView } from '#plane/fleet/vcluster-view.ts'

/** What of the domain is a setting. */
export const domainView = ({
  continuity: _kept,
  issuance: _told,
  maintenance: { policy, timeSync },
  ...settings
}: DomainSettings): Static<typeof DomainBody> => ({
  ...settings,
  maintenance: { policy: policyView(policy), timeSync: timeSync === null ? null : serviceView(timeSync) },
})
