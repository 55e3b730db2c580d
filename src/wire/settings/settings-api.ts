// Profiles and the values of the domain: policy that is data.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { builtIn } from '#domain/issuers/outside-issuer.ts'
import { joinMethods, keyTypes, profileWithoutEffect, type Profile } from '#domain/core/profile.ts'
import { policyWithoutEffect } from '#domain/fleet/policy.ts'
import { wireguardModes } from '#domain/core/wireguard.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import {
  closed,
  EmptyRequest,
  NameParams,
  NameText,
  NoEffectYet,
  oneOf,
  orNull,
  SetRequest,
  Settings,
  text,
} from '#wire/core/shapes.ts'
import { IssuerName } from '#wire/issuers/issuer-settings.ts'
import { ServiceBody } from '#wire/fleet/overlay.ts'
import { PolicyBody, policyView, serviceView } from '#wire/fleet/vcluster-api.ts'
import { OutputsBody, OutputsOrNone, outputsView } from '#wire/programs/output-document.ts'

export const ProfileBody = Type.Object(
  {
    name: NameText,
    description: Type.String({ maxLength: 256 }),
    join: Type.Object(
      {
        allOf: Type.Array(oneOf(joinMethods), { minItems: 1, maxItems: 3 }),
        tokenScope: oneOf(['node', 'domain']),
        tokenTtlMs: Type.Integer({ minimum: 1000 }),
      },
      closed,
    ),
    certificate: Type.Object(
      {
        lifetimeMs: Type.Integer({ minimum: 1000 }),
        /** Left out where it is the built-in one: the commands of 0.6 refuse a profile with a field that they do not know. */
        issuer: Type.Optional(IssuerName),
        /** Null, or left out: half of the lifetime. */
        minLifetimeMs: Type.Optional(orNull(Type.Integer({ minimum: 1000 }))),
        renewFrom: Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 }),
        renewTo: Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 }),
        keyTypes: Type.Array(oneOf(keyTypes), { minItems: 1, maxItems: 3 }),
        subject: Type.Object({ cn: text(64), o: text(64), ou: text(64) }, closed),
        uriSan: Type.Boolean(),
        aiaUrl: orNull(text(256)),
        cdpUrl: orNull(text(256)),
      },
      closed,
    ),
    keyStorage: oneOf(['file', 'memory', 'tpm']),
    onActiveConflict: oneOf(['prove', 'probe', 'reject']),
    probeSilenceMs: Type.Integer({ minimum: 6000, maximum: 3_600_000 }),
    comeback: Type.Object(
      { by: oneOf(['certificate', 'join', 'approve']), people: Type.Integer({ minimum: 0, maximum: 10 }) },
      closed,
    ),
    recovery: Type.Object(
      {
        mode: oneOf(['auto', 'approve', 'deny']),
        limit: Type.Integer({ minimum: 0, maximum: 1000 }),
        windowMs: Type.Integer({ minimum: 1000 }),
        rehearseEveryMs: Type.Integer({ minimum: 1000 }),
      },
      closed,
    ),
    onDuplicate: oneOf(['keep-live', 'fence']),
    wireguard: Type.Object(
      {
        mode: oneOf(wireguardModes),
        listenPort: Type.Integer({ minimum: 1, maximum: 65_535 }),
        mtu: Type.Integer({ minimum: 1280, maximum: 9000 }),
      },
      closed,
    ),
    outputs: OutputsBody,
  },
  closed,
)

/** Copies `from` and changes what `set` names, e.g. {"certificate.lifetimeMs": 3600000}. */
export const CreateProfileRequest = Type.Object(
  { name: ProfileBody.properties.name, from: Type.Optional(text(64)), set: Type.Optional(Settings) },
  closed,
)
/** A profile, and which of its settings promise what is not built yet. */
export const ProfileView = Type.Object({
  ...ProfileBody.properties,
  /** Left out where none is listed: the commands of 0.3 refuse a profile with a field that they do not know. */
  outputs: OutputsOrNone,
  no_effect_yet: NoEffectYet,
})
export const ProfileListAnswer = Type.Object({
  /** Without their own `no_effect_yet`. */
  profiles: Type.Array(ProfileView),
  /** By the name of the profile. */
  no_effect_yet: Type.Optional(recordOf(Type.String(), Type.Array(Type.String()))),
})

/** `POST /v1/profiles/{name}/delete` */
const ProfileDeleted = Type.Object({ name: NameText })

export const profileView = (profile: Profile): Static<typeof ProfileView> => {
  const without = profileWithoutEffect(profile)
  return { ...settingsOf(profile), ...(without.length === 0 ? {} : { no_effect_yet: without }) }
}

export const profileListView = (profiles: readonly Profile[]): Static<typeof ProfileListAnswer> => ({
  profiles: profiles.map(settingsOf),
  no_effect_yet: Object.fromEntries(
    profiles.flatMap((profile): [string, string[]][] => {
      const without = profileWithoutEffect(profile)
      return without.length === 0 ? [] : [[profile.name, without]]
    }),
  ),
})

/** Whatever else a row may have by now stays in it. */
const settingsOf = ({
  outputs,
  deletedAtMs: _live,
  certificate: { issuer, minLifetimeMs, ...certificate },
  ...settings
}: Profile): Omit<Static<typeof ProfileView>, 'no_effect_yet'> => ({
  ...(settings as Omit<Static<typeof ProfileBody>, 'outputs' | 'certificate'>),
  certificate: {
    ...(certificate as Static<typeof ProfileBody>['certificate']),
    ...(issuer !== builtIn && { issuer }),
    ...(minLifetimeMs !== null && { minLifetimeMs }),
  },
  ...(outputs.length === 0 ? {} : { outputs: outputsView(outputs) }),
})

export const DomainBody = Type.Object({
  name: Type.String(),
  defaultProfile: Type.String(),
  livenessGraceMs: Type.Integer({ minimum: 0 }),
  strangersPerMinute: Type.Integer({ minimum: 1 }),
  strangersPerMinutePerSource: Type.Integer({ minimum: 1 }),
  clockToleranceMs: Type.Integer({ minimum: 0 }),
  stuckEnrollmentMs: Type.Integer({ minimum: 1000 }),
  drainMs: Type.Integer({ minimum: 0 }),
  /** Of nodes without a vCluster. */
  maintenance: Type.Object({ policy: PolicyBody, timeSync: orNull(ServiceBody) }),
  /** Of the WireGuard network; null: made from the name of the domain. */
  overlayPrefix: orNull(Type.String()),
  /** How long a revocation list for programs is good for, at least. Left out by planes before 0.4. */
  programListMs: Type.Optional(Type.Integer({ minimum: 3_600_000 })),
  /** Which tasks may be queued at all. Left out by planes before 0.6. */
  tasks: Type.Optional(
    Type.Object({ run: Type.Boolean(), reboot: Type.Boolean(), approveRunAbove: orNull(Type.Integer()) }),
  ),
})

export const DomainView = Type.Object({ ...DomainBody.properties, no_effect_yet: NoEffectYet })

/** What of the domain is a setting. */
export const domainView = ({
  continuity: _kept,
  issuance: _told,
  maintenance: { policy, timeSync },
  ...settings
}: DomainSettings): Static<typeof DomainView> => ({
  ...settings,
  no_effect_yet: policyWithoutEffect('maintenance.policy'),
  maintenance: { policy: policyView(policy), timeSync: timeSync === null ? null : serviceView(timeSync) },
})

export const settingsApi = {
  profiles: endpoint({
    method: 'GET',
    path: '/v1/profiles',
    access: 'viewer',
    summary: 'All profiles',
    answer: ProfileListAnswer,
  }),
  createProfile: endpoint({
    method: 'POST',
    path: '/v1/profiles',
    access: 'platform-admin',
    summary: 'Makes a profile: a copy of another with some settings changed',
    body: CreateProfileRequest,
    answer: ProfileView,
    example: {
      status: 201,
      request: { name: 'gpu-short', from: 'gpu-cloud', set: { 'certificate.lifetimeMs': 3_600_000 } },
    },
  }),
  profile: endpoint({
    method: 'GET',
    path: '/v1/profiles/:name',
    access: 'viewer',
    summary: 'One profile',
    params: NameParams,
    answer: ProfileView,
  }),
  changeProfile: endpoint({
    method: 'PATCH',
    path: '/v1/profiles/:name',
    access: 'platform-admin',
    summary: 'Changes settings of a profile',
    params: NameParams,
    body: SetRequest,
    answer: ProfileView,
  }),
  deleteProfile: endpoint({
    method: 'POST',
    path: '/v1/profiles/:name/delete',
    access: 'platform-admin',
    summary: "Deletes a profile that no node, no unused token and not the domain's default uses",
    params: NameParams,
    body: EmptyRequest,
    answer: ProfileDeleted,
  }),
  domain: endpoint({
    method: 'GET',
    path: '/v1/domain',
    access: 'viewer',
    summary: 'The values of the domain',
    answer: DomainView,
  }),
  changeDomain: endpoint({
    method: 'PATCH',
    path: '/v1/domain',
    access: 'platform-admin',
    summary: 'Changes values of the domain',
    body: SetRequest,
    answer: DomainView,
    example: { request: { set: { livenessGraceMs: 600_000 } } },
  }),
}
