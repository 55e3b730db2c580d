import type { Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Core } from './core.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { sortableId } from '#platform/random.ts'

/** Written at first start and never removed, so that it is missing only where the plane was never initialised. */
export const domainSettingsRow = async (store: Pick<Store, 'get'>): Promise<Row<DomainSettings>> => {
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the store has no domain: this plane was never initialised')
  return row
}

/** The domain's settings as last committed, without a read on every use. */
export const followSettings = async ({
  store,
  feed,
  log,
}: Pick<Core, 'store' | 'feed' | 'log'>): Promise<() => DomainSettings> => {
  let published: DomainSettings | null = null
  feed.subscribe('domain settings', ({ writes }) => {
    for (const write of writes) if (write.put === 'domain') published = write.value
  })
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the store has no domain')
  store.onUpgraded(() => {
    const before = published
    store.get('domain', 'domain').then(
      (upgraded) => {
        // What was published meanwhile is newer.
        if (upgraded !== null && published === before) published = upgraded.value
      },
      (error: unknown) => log.warn({ err: error }, 'the settings of the domain stay as they were before the upgrade'),
    )
  })
  return () => published ?? row.value
}

/** What a decision about the whole domain reads that raises or resolves an alert in the same commit. */
export const readDomainAndAlert = async (
  { store, clock, random }: Pick<Core, 'store' | 'clock' | 'random'>,
  alertKeyOf: (domain: DomainSettings) => string,
) => {
  const domain = await domainSettingsRow(store)
  const alert = await store.get('alert', alertKeyOf(domain.value))
  const nowMs = clock.nowMs()
  return { domain, alert, newAlertId: sortableId(nowMs, random), nowMs }
}
