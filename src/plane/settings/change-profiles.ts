import type { Row, Attribution } from '#domain/core/change.ts'
import { decideChangeProfile, decideCreateProfile } from '#domain/settings/profile-rules.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** It says how long a certificate may last. */
export type LeafLimit = Pick<Issuer, 'longestLeafMs'>

export type ProfileSettings = Readonly<Record<string, unknown>>

type Written = { readonly kind: 'written'; readonly profile: Profile }

/** `from` null: a copy of the domain's default. */
export const createProfile = async (
  core: FlowCore,
  issuer: LeafLimit,
  asked: { readonly name: string; readonly from: string | null; readonly set: ProfileSettings },
  by: Attribution,
): Promise<Written | Refusal> => {
  const done = await commitDecision(core, async () => {
    const model = asked.from ?? (await domainSettingsRow(core.store)).value.defaultProfile
    const from = await core.store.get('profile', model)
    if (from === null) return refuse('PROFILE_NOT_FOUND', model)
    const existing = await core.store.get('profile', asked.name)
    return decideCreateProfile({ name: asked.name, from, existing, ...circumstances(core, issuer, asked.set, by) })
  })
  return done.kind === 'refused' ? done : { kind: 'written', profile: done.profile }
}

/** `onlyIf`: whoever was promised a change of this profile does not get one of another. */
export const changeProfile = async (
  core: FlowCore,
  issuer: LeafLimit,
  name: string,
  set: ProfileSettings,
  by: Attribution,
  onlyIf: (profile: Row<Profile>) => Refusal | null = () => null,
): Promise<Written | Refusal> => {
  const done = await commitDecision(core, async () => {
    const profile = await core.store.get('profile', name)
    if (profile === null) return refuse('PROFILE_NOT_FOUND', name)
    const no = onlyIf(profile)
    if (no !== null) return no
    return decideChangeProfile({ profile, ...circumstances(core, issuer, set, by) })
  })
  return done.kind === 'refused' ? done : { kind: 'written', profile: done.profile }
}

const circumstances = (core: FlowCore, issuer: LeafLimit, set: ProfileSettings, by: Attribution) => ({
  set,
  by,
  longestLeafMs: issuer.longestLeafMs(),
  nowMs: core.clock.nowMs(),
})
