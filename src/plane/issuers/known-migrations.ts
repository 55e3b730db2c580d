// Migrations that are under way, held in memory as every replica receives them.

import { isOver, type IssuerMigration } from '#domain/issuers/migration.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'

export type KnownMigrations = {
  /** Under way, in the order of the profiles. */
  all(): readonly IssuerMigration[]
  /** Null: the profile is in none. */
  of(profile: string): IssuerMigration | null
}

export const openKnownMigrations = async ({ store, feed }: Pick<Core, 'store' | 'feed'>): Promise<KnownMigrations> => {
  const byProfile = new Map<string, IssuerMigration>()
  const published = new Set<string>()
  feed.subscribe('issuer migrations', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'issuer-migration') continue
      published.add(write.value.profile)
      byProfile.set(write.value.profile, write.value)
    }
  })
  for await (const migration of everyRow(store, 'issuer-migration', ({ profile }) => profile))
    if (!published.has(migration.profile)) byProfile.set(migration.profile, migration)
  const isUnderWay = (migration: IssuerMigration): boolean => !isOver(migration) && !migration.forged
  return {
    all: () => [...byProfile.values()].filter(isUnderWay).sort((one, other) => (one.profile < other.profile ? -1 : 1)),
    of(profile) {
      const found = byProfile.get(profile)
      return found !== undefined && isUnderWay(found) ? found : null
    },
  }
}
