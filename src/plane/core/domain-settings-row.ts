import type { Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Core } from './core.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** Written at first start and never removed, so that it is missing only where the plane was never initialised. */
export const domainSettingsRow = async (store: Pick<Store, 'get'>): Promise<Row<DomainSettings>> => {
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the store has no domain: this plane was never initialised')
  return row
}

/** The domain's settings as last committed, without a read on every use. */
export const followSettings = async ({ store, feed }: Pick<Core, 'store' | 'feed'>): Promise<() => DomainSettings> => {
  let heard: DomainSettings | null = null
  feed.subscribe('domain settings', ({ writes }) => {
    for (const write of writes) if (write.put === 'domain') heard = write.value
  })
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the store has no domain')
  store.onUpgraded(() => {
    const before = heard
    void store.get('domain', 'domain').then((upgraded) => {
      // What was heard meanwhile is newer.
      if (upgraded !== null && heard === before) heard = upgraded.value
    })
  })
  return () => heard ?? row.value
}
