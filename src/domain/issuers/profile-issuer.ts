// The issuer that a profile names for the certificates of its nodes.

import type { Profile } from '#domain/core/profile.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Row } from '#domain/core/change.ts'
import { unfitToSign, type NamedIssuer } from './named-issuer.ts'
import type { OutsideIssuer } from './outside-issuer.ts'

/** Names of the profiles that have it as their issuer. */
export const profilesNaming = (issuer: string, profiles: readonly Row<Profile>[]): readonly string[] =>
  profiles
    .filter(({ value }) => value.certificate.issuer === issuer && value.deletedAtMs === null)
    .map(({ value }) => value.name)

export const namedByProfile = ({ name, certificate }: Pick<Profile, 'name' | 'certificate'>): NamedIssuer => ({
  ...{ issuer: certificate.issuer, kind: name, lifetimeMs: certificate.lifetimeMs },
  ...{ what: `profile ${name}`, option: `--profile ${name}` },
})

/** Null: it may be named, and gives what the profile asks for. `issuer`: null where there is none of that name. */
export const unfitForProfile = (
  profile: Pick<Profile, 'name' | 'certificate'>,
  issuer: OutsideIssuer | null,
): Refusal | null => unfitToSign(namedByProfile(profile), issuer)
