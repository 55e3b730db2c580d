// Profiles and the values of the domain: policy that is data.

import type { Static } from 'typebox'
import { refuse } from '#domain/core/refusal.ts'
import { changeProfile, createProfile, type ProfileDeps } from './change-profiles.ts'
import { changeSettings } from './change-settings.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { domainView } from './domain-view.ts'
import { CreateProfileRequest, DomainBody, ProfileBody, ProfileListAnswer, SetRequest } from '#wire/api/operator-api.ts'
import { attributionOf, NameParams, param } from '#plane/http/operator-call.ts'
import { answer, type Call, type Route } from '#plane/http/route.ts'

export const operatorPolicyRoutes = (deps: ProfileDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/profiles',
    access: 'viewer',
    summary: 'All profiles',
    answer: ProfileListAnswer,
    handle: async () => answer({ profiles: (await deps.store.profiles()).map(({ value }) => value) }),
  },
  {
    method: 'POST',
    path: '/v1/profiles',
    access: 'platform-admin',
    summary: 'Makes a profile: a copy of another with some settings changed',
    body: CreateProfileRequest,
    answer: ProfileBody,
    handle: async (call) => {
      const { name, from = null, set = {} } = call.body as Static<typeof CreateProfileRequest>
      const done = await createProfile(deps, { name, from, set }, attributionOf(call))
      return done.kind === 'refused' ? done : answer(done.profile, 201)
    },
  },
  {
    method: 'GET',
    path: '/v1/profiles/:name',
    access: 'viewer',
    summary: 'One profile',
    params: NameParams,
    answer: ProfileBody,
    handle: async (call) => {
      const profile = await deps.store.get('profile', param(call, 'name'))
      return profile === null ? refuse('PROFILE_NOT_FOUND', param(call, 'name')) : answer(profile.value)
    },
  },
  {
    method: 'PATCH',
    path: '/v1/profiles/:name',
    access: 'platform-admin',
    summary: 'Changes settings of a profile',
    params: NameParams,
    body: SetRequest,
    answer: ProfileBody,
    handle: async (call) => {
      const done = await changeProfile(deps, param(call, 'name'), setIn(call), attributionOf(call))
      return done.kind === 'refused' ? done : answer(done.profile)
    },
  },
  {
    method: 'GET',
    path: '/v1/domain',
    access: 'viewer',
    summary: 'The values of the domain',
    answer: DomainBody,
    handle: async () => answer(domainView((await domainSettingsRow(deps.store)).value)),
  },
  {
    method: 'PATCH',
    path: '/v1/domain',
    access: 'platform-admin',
    summary: 'Changes values of the domain',
    body: SetRequest,
    answer: DomainBody,
    handle: async (call) => {
      const done = await changeSettings(deps, setIn(call), attributionOf(call))
      return done.kind === 'refused' ? done : answer(domainView(done.settings))
    },
  },
]

const setIn = ({ body }: Call): Static<typeof SetRequest>['set'] => (body as Static<typeof SetRequest>).set
