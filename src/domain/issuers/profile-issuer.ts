// Whom a profile names to sign its certificates: the built-in authority, or an outside issuer that is able to.

import { durationWords } from '#domain/core/in-words.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Row } from '#domain/core/change.ts'
import { builtIn, type OutsideIssuer } from './outside-issuer.ts'

/** Names of the profiles that have it as their issuer. */
export const profilesNaming = (issuer: string, profiles: readonly Row<Profile>[]): readonly string[] =>
  profiles
    .filter(({ value }) => value.certificate.issuer === issuer && value.deletedAtMs === null)
    .map(({ value }) => value.name)

/** Null: it may be named, and gives what the profile asks for. `issuer`: null where there is none of that name. */
export const unfitForProfile = (
  { name, certificate }: Pick<Profile, 'name' | 'certificate'>,
  issuer: OutsideIssuer | null,
): Refusal | null => {
  if (certificate.issuer === builtIn) return null
  if (issuer === null || issuer.state.kind === 'retired') return refuse('OUTSIDE_ISSUER_NOT_FOUND', certificate.issuer)
  if (issuer.forged) return refuse('ISSUER_ROW_FORGED', issuer.name)
  if (issuer.state.kind === 'disabled')
    return refuse('ISSUER_NOT_READY', `${issuer.name} is disabled: muster issuer enable ${issuer.name}`)
  const { abilities, access } = issuer
  if (abilities === null) return refuse('ISSUER_NOT_READY', `${issuer.name} has not passed a test`)
  if (access.kind === 'vault' && !['*', name].some((profile) => Object.hasOwn(access.roles, profile)))
    return refuse(
      'ISSUER_NOT_READY',
      `${issuer.name} has no role for profile ${name}: muster issuer set ${issuer.name} --role ${name}=ROLE ...`,
    )
  if (certificate.lifetimeMs > abilities.longestMs)
    return refuse(
      'ISSUER_NOT_READY',
      `${issuer.name} was tested for ${durationWords(abilities.longestMs)} at most: muster issuer test ${issuer.name} --profile ${name} --lifetime ${certificate.lifetimeMs}ms`,
    )
  return null
}
