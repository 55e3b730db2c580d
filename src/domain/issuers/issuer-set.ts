// Whose roots agents are given beside those of the plane: what the certificates of nodes hang under, or are about to.

import type { Profile } from '#domain/core/profile.ts'
import { isOver, type Migration } from './migration.ts'
import { builtIn } from './outside-issuer.ts'

/**
 * Names of issuers, those first that must not be missing: a set has an end. The built-in authority is there where a migration leaves it or
 * comes to it; elsewhere its roots are those that the plane is verified by.
 */
export const issuersInSet = (
  profiles: readonly Pick<Profile, 'certificate' | 'deletedAtMs'>[],
  migrations: readonly Pick<Migration, 'from' | 'to' | 'stage'>[],
): readonly string[] => {
  const moving = migrations.filter((migration) => !isOver(migration))
  const named = profiles.filter(({ deletedAtMs }) => deletedAtMs === null).map(({ certificate }) => certificate.issuer)
  return [
    ...new Set([
      ...moving.map(({ to }) => to),
      ...moving.map(({ from }) => from),
      ...named.filter((issuer) => issuer !== builtIn),
    ]),
  ]
}
