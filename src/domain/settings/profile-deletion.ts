// The end of a profile: a tombstone, under which no node lives. A node or a token that names it relies on its row, and the store looks
// at the nodes in the commit, so that none comes in meanwhile.

import { decided, entry, readOf, type Attribution, type Decided, type Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { counted } from '#domain/core/in-words.ts'
import type { IssuerMigration } from '#domain/issuers/migration.ts'
import { migrationBars } from './profile-rules.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type DeleteProfileFacts = {
  readonly profile: Row<Profile>
  /** Null: it never was in one. */
  readonly migration: Row<IssuerMigration> | null
  /** Its default profile is the one that it has once this is committed. */
  readonly domain: Row<DomainSettings>
  /** How many are under it that are not revoked. */
  readonly nodes: number
  /** How many that are not used yet register a node under it. */
  readonly tokens: number
  readonly by: Attribution
  readonly nowMs: number
}

export const decideDeleteProfile = (facts: DeleteProfileFacts): (Decided & { readonly profile: Profile }) | Refusal => {
  const { profile: row, domain, by, nowMs } = facts
  const { name } = row.value
  if (row.value.deletedAtMs !== null) return refuse('PROFILE_NOT_FOUND', name)
  const onItsWay = migrationBars(name, facts.migration)
  if (onItsWay !== null) return onItsWay
  const users = usersOf(facts)
  if (users.length > 0) return { ...refuse('PROFILE_IN_USE', users.join('; ')), about: { profile: name } }
  const profile: Profile = { ...row.value, outputs: [], deletedAtMs: nowMs }
  return {
    ...decided({
      reads: [
        readOf('profile', name, row),
        readOf('domain', 'domain', domain),
        readOf('issuer-migration', name, facts.migration),
      ],
      writes: [{ put: 'profile', value: profile }],
      entries: [entry(by, nowMs, 'profile.deleted', {}, { profile: name })],
      unused: [{ kind: 'profile', name }],
    }),
    profile,
  }
}

/** Each with the command that helps. */
const usersOf = ({ profile: { value }, domain, nodes, tokens }: DeleteProfileFacts): readonly string[] => [
  ...(nodes === 0
    ? []
    : [`${counted(nodes, 'node')} under it, which would have to be revoked: muster node list --profile ${value.name}`]),
  ...(tokens === 0
    ? []
    : [`${counted(tokens, 'unused token')} for it, to be revoked or used first: muster token list`]),
  ...(domain.value.defaultProfile === value.name
    ? ["it is the domain's default: muster domain set defaultProfile=OTHER"]
    : []),
]
