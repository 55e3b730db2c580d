import type { Static } from 'typebox'
import type { DomainSettings } from '#domain/domain-settings.ts'
import type { DomainBody } from '#wire/operator-api.ts'

/** What of the domain is a setting. */
export const domainView = ({
  continuity: _kept,
  issuance: _told,
  ...settings
}: DomainSettings): Static<typeof DomainBody> => settings
