// The outside issuers, held in memory as every replica receives them.

import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'

export type KnownIssuers = {
  /** Those that have not retired, in the order of their names. */
  all(): readonly OutsideIssuer[]
  /** Null: there is none of that name now. */
  find(name: string): OutsideIssuer | null
  /** Also one that has retired. */
  byId(id: string): OutsideIssuer | null
  /** Called with each that was written, by whichever replica. */
  onChange(run: (issuer: OutsideIssuer) => void): void
}

export const openKnownIssuers = async ({ store, feed }: Pick<Core, 'store' | 'feed'>): Promise<KnownIssuers> => {
  const byName = new Map<string, OutsideIssuer>()
  const listeners: ((issuer: OutsideIssuer) => void)[] = []
  let live: readonly OutsideIssuer[] = []
  const take = (issuer: OutsideIssuer): void => {
    byName.set(issuer.name, issuer)
    live = [...byName.values()]
      .filter(({ state }) => state.kind !== 'retired')
      .sort((one, other) => (one.name < other.name ? -1 : 1))
    for (const run of listeners) run(issuer)
  }
  // Before the rows are read: one that retires meanwhile is not taken for one that is there.
  const published = new Set<string>()
  feed.subscribe('outside issuers', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'outside-issuer') continue
      published.add(write.value.name)
      take(write.value)
    }
  })
  for await (const issuer of everyRow(store, 'outside-issuer', ({ name }) => name))
    if (!published.has(issuer.name)) take(issuer)
  return {
    all: () => live,
    find: (name) => live.find((issuer) => issuer.name === name) ?? null,
    byId: (id) => [...byName.values()].find((issuer) => issuer.id === id) ?? null,
    onChange: (run) => void listeners.push(run),
  }
}
