// The settings of the domain as a plane follows them.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Feed } from '#plane/core/feed.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Store } from '#plane/store/contract/store.ts'

export const settingsNow = async (store: Store, feed: Feed): Promise<() => DomainSettings> => {
  let settings = (await domainSettingsRow(store)).value
  feed.subscribe('domain settings', ({ writes }) => {
    for (const write of writes) if (write.put === 'domain') settings = write.value
  })
  return () => settings
}
