// What makes a profile one that works. Profiles are data; operators copy and change them.

import { readOf, type Row, boundedText, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import { issuerNameRule } from '#domain/core/issuer-name.ts'
import { joinMethods, keyTypes, longestTokenTtlMs, type Profile } from '#domain/core/profile.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  changesOf,
  duration,
  fraction,
  keptValue,
  oneOf,
  orNull,
  printable,
  settingAt,
  settingProblem,
  settingsIn,
  settingsTree,
  settingRefusal,
  someOf,
  urlOrNull,
  wholeNumber,
  withSetting,
  yesOrNo,
  type Rule,
  type Rules,
  type Tree,
} from '#domain/core/settings-check.ts'
import { wireguardModes } from '#domain/core/wireguard.ts'
import { isOver, type IssuerMigration } from '#domain/issuers/migration.ts'
import { namedByOutputs, signedByThem } from '#domain/issuers/named-issuer.ts'
import { namedByProfile } from '#domain/issuers/profile-issuer.ts'
import { builtIn, type OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { outputsRule } from '#domain/programs/output-rules.ts'

const day = 24 * 3_600_000

const template = (needs: readonly string[]): Rule => ({
  takes: ['text of 1 to 64 printable characters in which {id} and {domain} are filled in', ...needs].join(', with '),
  fits: (value) => {
    if (typeof value !== 'string' || value === '' || !printable(64).fits(value)) return false
    const rest = value.replaceAll('{id}', '').replaceAll('{domain}', '')
    return !/[{}]/.test(rest) && needs.every((part) => value.includes(part))
  },
})

export const profileRules: Rules = {
  description: printable(256),
  'join.allOf': someOf(joinMethods),
  'join.tokenScope': oneOf(['node', 'domain']),
  'join.tokenTtlMs': duration(1000, longestTokenTtlMs),
  'certificate.lifetimeMs': duration(1000, 3650 * day),
  'certificate.issuer': issuerNameRule,
  'certificate.minLifetimeMs': orNull(duration(1000, 3650 * day)),
  'certificate.renewFrom': fraction,
  'certificate.renewTo': fraction,
  'certificate.keyTypes': someOf(keyTypes),
  // Without the id all nodes of the profile would share one name.
  'certificate.subject.cn': template(['{id}']),
  'certificate.subject.o': template([]),
  'certificate.subject.ou': template([]),
  'certificate.uriSan': yesOrNo,
  'certificate.aiaUrl': urlOrNull,
  'certificate.cdpUrl': urlOrNull,
  keyStorage: oneOf(['file', 'memory', 'tpm']),
  onActiveConflict: oneOf(['prove', 'probe', 'reject']),
  // At least two pings without an answer, of three seconds each; at most what a person would call an outage.
  probeSilenceMs: duration(6000, 3_600_000),
  'comeback.by': oneOf(['certificate', 'join', 'approve']),
  'comeback.people': wholeNumber(0, 10),
  'recovery.mode': oneOf(['auto', 'approve', 'deny']),
  'recovery.limit': wholeNumber(0, 1000),
  'recovery.windowMs': duration(1000, 365 * day),
  'recovery.rehearseEveryMs': duration(60_000, 365 * day),
  onDuplicate: oneOf(['keep-live', 'fence']),
  'wireguard.mode': oneOf(wireguardModes),
  'wireguard.listenPort': wholeNumber(1, 65_535),
  // The least an IPv6 link may have, and the most a jumbo frame carries.
  'wireguard.mtu': wholeNumber(1280, 9000),
  outputs: outputsRule,
}

/** A profile as a document has it, without its name. */
export const profileDocument = (profile: Profile): Tree => {
  const { certificate, ...others } = settingsTree(profileRules, profile)
  return { ...others, certificate: signedAsUsual(profile, certificate as Tree) }
}

/** Left out: planes of 0.6 refuse a document with settings that they do not know. */
const signedAsUsual = ({ certificate }: Profile, { issuer, minLifetimeMs, ...settings }: Tree): Tree => ({
  ...settings,
  ...(certificate.issuer !== builtIn && { issuer }),
  ...(certificate.minLifetimeMs !== null && { minLifetimeMs }),
})

export const settingsOfProfile = (document: Tree) => settingsIn(profileRules, document)

const nameShape = /^[a-z0-9][a-z0-9-]{0,62}$/

/** What would not work, naming the setting; null when all is well. */
export const profileProblem = (profile: Profile, longestLeafMs: number): string | null => {
  if (!nameShape.test(profile.name)) return 'a name takes 1 to 63 lower-case letters, digits and dashes'
  for (const key of Object.keys(profileRules)) {
    const problem = settingProblem(profileRules, key, settingAt(profile, key))
    if (problem !== null) return problem
  }
  return contradiction(profile, longestLeafMs)
}

/** Settings that are each fine and do not go together. */
const contradiction = (
  { join, certificate, keyStorage, comeback, recovery }: Profile,
  longestLeafMs: number,
): string | null => {
  if (certificate.issuer === builtIn && certificate.lifetimeMs > longestLeafMs) {
    return `certificate.lifetimeMs is longer than any issuer on record can give: at most ${longestLeafMs}`
  }
  if (certificate.minLifetimeMs !== null && certificate.minLifetimeMs > certificate.lifetimeMs)
    return 'certificate.minLifetimeMs must not be longer than certificate.lifetimeMs'
  if (certificate.renewFrom > certificate.renewTo)
    return 'certificate.renewFrom must not be later than certificate.renewTo'
  if (keyStorage === 'tpm' && certificate.keyTypes.every((type) => type === 'ed25519')) {
    return 'certificate.keyTypes needs p256 or p384 with keyStorage tpm: TPMs have no Ed25519'
  }
  // Agents would keep such a key in memory: an operator would rely on a TPM that is not used.
  if (keyStorage === 'tpm' && !join.allOf.includes('tpm'))
    return 'keyStorage tpm has no effect yet: no agent keeps a key in a TPM; it takes file or memory'
  if (comeback.by === 'approve' && comeback.people < 1)
    return 'comeback.people must be at least 1 with comeback.by approve'
  if (recovery.mode === 'auto' && recovery.limit < 1) return 'recovery.limit must be at least 1 with recovery.mode auto'
  if (join.tokenScope === 'domain' && !join.allOf.includes('token')) {
    return 'join.tokenScope domain needs token in join.allOf'
  }
  return null
}

type ProfileDecided = Decided & { readonly profile: Profile }

export type CreateProfileFacts = {
  readonly name: string
  readonly from: Row<Profile>
  readonly existing: Row<Profile> | null
  readonly set: Readonly<Record<string, unknown>>
  /** Of the built-in authority. */
  readonly longestLeafMs: number
  /** Every outside issuer there is or was. */
  readonly issuers: readonly Row<OutsideIssuer>[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideCreateProfile = (facts: CreateProfileFacts): ProfileDecided | Refusal => {
  const { name, from, existing, by, nowMs } = facts
  if (existing !== null && existing.value.deletedAtMs === null) return refuse('PROFILE_EXISTS')
  const profile = changed({ ...from.value, name }, facts)
  if ('kind' in profile) return profile
  const signed = signedByThem([namedByProfile(profile), ...namedByOutputs(profile.outputs)], facts.issuers)
  if (isRefusal(signed)) return signed
  const body = { profile: name, from: from.value.name, changes: changeLines(from.value, profile, facts.set) }
  return {
    ...decided({
      reads: [readOf('profile', name, existing), readOf('profile', from.value.name, from), ...signed],
      writes: [{ put: 'profile', value: profile }],
      entries: [entry(by, nowMs, 'profile.created', {}, body)],
    }),
    profile,
  }
}

/** `migration`: of its certificates from one issuer to another. */
export type ChangeProfileFacts = Omit<CreateProfileFacts, 'name' | 'from' | 'existing'> & {
  readonly profile: Row<Profile>
  /** Null: it never was in one. */
  readonly migration: Row<IssuerMigration> | null
}

export const decideChangeProfile = (facts: ChangeProfileFacts): ProfileDecided | Refusal => {
  const before = facts.profile.value
  const profile = changed(before, facts)
  if ('kind' in profile) return profile
  const moves = profile.certificate.issuer !== before.certificate.issuer
  const onItsWay = moves ? migrationBars(before.name, facts.migration) : null
  if (onItsWay !== null) return onItsWay
  // Everything else can be changed while the issuer is disabled.
  const asBefore = (['issuer', 'lifetimeMs'] as const).every(
    (key) => profile.certificate[key] === before.certificate[key],
  )
  const named = [...(asBefore ? [] : [namedByProfile(profile)]), ...namedByOutputs(profile.outputs, before.outputs)]
  const signed = signedByThem(named, facts.issuers)
  if (isRefusal(signed)) return signed
  const body = { profile: before.name, changes: changeLines(before, profile, facts.set) }
  return {
    ...decided({
      reads: [
        readOf('profile', before.name, facts.profile),
        ...(moves ? [readOf('issuer-migration', before.name, facts.migration)] : []),
        ...signed,
      ],
      writes: [{ put: 'profile', value: profile }],
      entries: [entry(facts.by, facts.nowMs, 'profile.changed', {}, body)],
    }),
    profile,
  }
}

/** Who signs is decided by the migration, step by step. */
export const migrationBars = (profile: string, migration: Row<IssuerMigration> | null): Refusal | null => {
  if (migration === null || migration.value.forged || isOver(migration.value)) return null
  const { from, to } = migration.value
  return { ...refuse('MIGRATION_UNDER_WAY', `${profile} is on its way from ${from} to ${to}`), about: { profile } }
}

/** Outputs are long. */
const changeLines = (before: Profile, after: Profile, set: CreateProfileFacts['set']): readonly string[] =>
  changesOf(before, after, Object.keys(set)).map((line) => boundedText(line))

const changed = (
  profile: Profile,
  { set, longestLeafMs }: Pick<CreateProfileFacts, 'set' | 'longestLeafMs'>,
): Profile | Refusal => {
  let result = profile
  for (const [key, value] of Object.entries(set)) {
    const no = settingRefusal('PROFILE_INVALID', profileRules, key, value)
    if (no !== null) return no
    result = withSetting(result, key, keptValue(profileRules, key, value))
  }
  const problem = profileProblem(result, longestLeafMs)
  return problem === null ? result : refuse('PROFILE_INVALID', problem)
}
