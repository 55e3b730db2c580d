// Profiles and the values of the domain: policy that is data.

import { refuse } from '#domain/core/refusal.ts'
import { changeProfile, createProfile, type LeafLimit } from './change-profiles.ts'
import { changeSettings } from './change-settings.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { domainView, settingsApi } from '#wire/settings/settings-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const operatorPolicyRoutes = (core: FlowCore, issuer: LeafLimit): readonly Route[] =>
  serve(settingsApi, {
    profiles: async () => answer({ profiles: (await core.store.profiles()).map(({ value }) => value) }),
    createProfile: async (call) => {
      const { name, from = null, set = {} } = call.body
      const done = await createProfile(core, issuer, { name, from, set }, attributionOf(call))
      return done.kind === 'refused' ? done : answer(done.profile, 201)
    },
    profile: async (call) => {
      const profile = await core.store.get('profile', call.params.name)
      return profile === null ? refuse('PROFILE_NOT_FOUND', call.params.name) : answer(profile.value)
    },
    changeProfile: async (call) => {
      const done = await changeProfile(core, issuer, call.params.name, call.body.set, attributionOf(call))
      return done.kind === 'refused' ? done : answer(done.profile)
    },
    domain: async () => answer(domainView((await domainSettingsRow(core.store)).value)),
    changeDomain: async (call) => {
      const done = await changeSettings(core, call.body.set, attributionOf(call))
      return done.kind === 'refused' ? done : answer(domainView(done.settings))
    },
  })
