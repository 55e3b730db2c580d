// The alerts that are not resolved, in memory: as on record at start, and as every commit changes them.

import { alertKey, type Alert, type AlertKind } from '#domain/alerts/alert.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type StandingAlerts = {
  has(kind: AlertKind, subject: string): boolean
  all(): Iterable<Alert>
}

const pageSize = 500

export const openStandingAlerts = async (store: Pick<Store, 'alerts'>, feed: Feed): Promise<StandingAlerts> => {
  const standing = new Map<string, Alert>()
  const heardOf = new Set<string>()
  feed.subscribe(({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'alert') continue
      const key = alertKey(write.value)
      heardOf.add(key)
      if (write.value.state.kind === 'resolved') standing.delete(key)
      else standing.set(key, write.value)
    }
  })
  for await (const alert of unresolved(store)) {
    // What was committed while we read is newer than what we read.
    if (!heardOf.has(alertKey(alert))) standing.set(alertKey(alert), alert)
  }
  return {
    has: (kind, subject) => standing.size > 0 && standing.has(alertKey({ kind, subject })),
    all: () => standing.values(),
  }
}

async function* unresolved(store: Pick<Store, 'alerts'>): AsyncGenerator<Alert> {
  for (let after: string | null = null; ;) {
    const page = await store.alerts({ unresolvedOnly: true, after, limit: pageSize })
    for (const { value } of page) yield value
    after = page.at(-1)?.value.id ?? null
    if (page.length < pageSize || after === null) return
  }
}
