// Profiles and the values of the domain: policy that is data.

import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { domainView, profileListView, profileView, settingsApi } from '#wire/settings/settings-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Row, Attribution } from '#domain/core/change.ts'
import { decideChangeProfile, decideCreateProfile } from '#domain/settings/profile-rules.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { decideChangeSettings } from '#domain/settings/settings-rules.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { everyRow } from '#plane/core/pages.ts'
import { deleteProfile } from './delete-profile.ts'

export const operatorPolicyRoutes = (core: FlowCore, issuer: LeafLimit): readonly Route[] =>
  serve(settingsApi, {
    profiles: async () => answer(profileListView((await core.store.profiles()).map(({ value }) => value))),
    createProfile: async (call) => {
      const { name, from = null, set = {} } = call.body
      const done = await createProfile(core, issuer, { name, from, set }, attributionOf(call))
      return done.kind === 'refused' ? done : answer(profileView(done.profile), 201)
    },
    profile: async (call) => {
      const profile = await liveProfile(core.store, call.params.name)
      return isRefusal(profile) ? profile : answer(profileView(profile.value))
    },
    changeProfile: async (call) => {
      const done = await changeProfile(core, issuer, call.params.name, call.body.set, attributionOf(call))
      return done.kind === 'refused' ? done : answer(profileView(done.profile))
    },
    deleteProfile: async (call) => {
      const { name } = call.params
      const done = await deleteProfile(core, name, attributionOf(call))
      return done.kind === 'refused' ? done : answer({ name })
    },
    domain: async () => answer(domainView((await domainSettingsRow(core.store)).value)),
    changeDomain: async (call) => {
      const done = await changeSettings(core, call.body.set, attributionOf(call))
      return done.kind === 'refused' ? done : answer(domainView(done.settings))
    },
  })

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
    const from = await liveProfile(core.store, model)
    if (isRefusal(from)) return from
    const existing = await core.store.get('profile', asked.name)
    return decideCreateProfile({
      name: asked.name,
      from,
      existing,
      ...(await circumstances(core, issuer, asked.set, by)),
    })
  })
  return done.kind === 'refused' ? done : { kind: 'written', profile: done.profile }
}

/** `onlyIf`: a precondition that the decision checks inside the transaction. */
export const changeProfile = async (
  core: FlowCore,
  issuer: LeafLimit,
  name: string,
  set: ProfileSettings,
  by: Attribution,
  onlyIf: (profile: Row<Profile>) => Refusal | null = () => null,
): Promise<Written | Refusal> => {
  const done = await commitDecision(core, async () => {
    const profile = await liveProfile(core.store, name)
    if (isRefusal(profile)) return profile
    const no = onlyIf(profile)
    if (no !== null) return no
    const migration = await core.store.get('issuer-migration', name)
    return decideChangeProfile({ profile, migration, ...(await circumstances(core, issuer, set, by)) })
  })
  return done.kind === 'refused' ? done : { kind: 'written', profile: done.profile }
}

const circumstances = async (core: FlowCore, issuer: LeafLimit, set: ProfileSettings, by: Attribution) => ({
  set,
  by,
  longestLeafMs: issuer.longestLeafMs(),
  issuers: await readIssuers(core.store),
  nowMs: core.clock.nowMs(),
})

const changeSettings = async (
  core: FlowCore,
  set: Readonly<Record<string, unknown>>,
  by: Attribution,
): Promise<{ readonly kind: 'written'; readonly settings: DomainSettings } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const domain = await domainSettingsRow(core.store)
    const profiles = new Map((await core.store.profiles()).map(({ value, version }) => [value.name, version]))
    const addressesHeld = 'overlayPrefix' in set && (await anyAddressHeld(core.store))
    return decideChangeSettings({ domain, profiles, addressesHeld, set, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'written', settings: done.settings }
}

/** One that is given to a node meanwhile is of the former prefix, and is replaced when the node next enrolls. */
export const anyAddressHeld = async (store: Pick<Store, 'list'>): Promise<boolean> => {
  for await (const { releasedAtMs } of everyRow(store, 'overlay-address', ({ address }) => address))
    if (releasedAtMs === null) return true
  return false
}
