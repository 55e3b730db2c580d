// What names an issuer, and so keeps it from retiring.

import type { Row, RowTypes } from '#domain/core/change.ts'
import type { Profile } from '#domain/core/profile.ts'
import { outputsNaming, workersNaming } from './named-issuer.ts'
import { profilesNaming } from './profile-issuer.ts'

/** All of them: one that names it meanwhile wins the race. */
export type NamingRows = {
  readonly profiles: readonly Row<Profile>[]
  readonly vclusters: readonly Row<RowTypes['vcluster']>[]
  readonly workerIssuers: readonly Row<RowTypes['worker-issuer']>[]
}

/** Each output with who lists it. */
export const outputsNamingIt = (issuer: string, { profiles, vclusters }: Omit<NamingRows, 'workerIssuers'>) =>
  [...profiles, ...vclusters].flatMap(({ value }) =>
    outputsNaming(issuer, value.outputs).map((output) => `${output} of ${value.name}`),
  )

/** In words; null: nothing names it. */
export const namingIt = (issuer: string, rows: NamingRows): string | null => {
  const listed = (what: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`the ${what} that name it: ${names.slice(0, 8).join(', ')}`]
  const found = [
    ...listed('profiles', profilesNaming(issuer, rows.profiles)),
    ...listed('outputs', outputsNamingIt(issuer, rows)),
    ...listed('worker issuers', workersNaming(issuer, rows.workerIssuers)),
  ]
  return found.length === 0 ? null : found.join('; ')
}
