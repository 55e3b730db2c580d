// Migrations of profiles from one issuer to another, as operators see and move them. Times are RFC 3339.

import { Type, type Static } from 'typebox'
import type { IssuerMigration } from '#domain/issuers/migration.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NameText, NodeIdText, oneOf, orNull } from '#wire/core/shapes.ts'

/** `built-in`, or that of an outside one. */
const SignerName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$' })
const MigrationParams = Type.Object({ profile: NameText }, closed)

const stages = ['prepare', 'share', 'finish', 'retire', 'ended', 'forged'] as const

/** How far the nodes of the profile are. */
const ProgressView = Type.Object({
  active: Type.Integer({ description: 'active nodes of the profile' }),
  moved: Type.Integer({ description: 'whose newest certificate is of the new issuer' }),
  /** The revision of the set of roots that agents are to confirm. */
  roots_revision: Type.Integer(),
  /** False: the set is full, and no node can move. */
  roots_delivered: Type.Boolean(),
  /** Active nodes whose agents have not confirmed it. */
  unconfirmed: Type.Array(Type.String()),
  /** Of these, those whose agents have never said that they know such a set, as those of 0.6: they have to be excluded by name. */
  older_agents: Type.Array(Type.String()),
  /** Nodes with an unexpired certificate of the old issuer. */
  under_old: Type.Array(Type.String()),
})

export const MigrationView = Type.Object({
  profile: Type.String(),
  from: Type.String(),
  to: Type.String(),
  stage: oneOf(stages),
  /** Of `share`. */
  percent: orNull(Type.Integer()),
  /** Of `ended`. */
  ended_because: orNull(Type.String()),
  excluded: Type.Array(Type.String()),
  by: Type.String(),
  since: Type.String(),
  /** Since when the new issuer is not asked by this replica, and the old one signs in its place; null: it is asked. */
  new_away_since: orNull(Type.String()),
  new_away_because: orNull(Type.String()),
  /** Null: it is over. */
  progress: orNull(ProgressView),
})
export type MigrationView = Static<typeof MigrationView>

export const MigrationPlan = Type.Object({
  profile: Type.String(),
  from: Type.String(),
  to: Type.String(),
  /** As they would stand now; nobody has confirmed a set that has not been delivered. */
  active: Type.Integer(),
  older_agents: Type.Array(Type.String()),
  under_old: Type.Integer(),
  lifetime_ms: Type.Integer(),
  /** What is to be known before it begins. */
  notes: Type.Array(Type.String()),
})
export type MigrationPlan = Static<typeof MigrationPlan>

export type MigrationSurroundings = {
  readonly away: { readonly sinceMs: number; readonly why: string } | null
  readonly progress: MigrationView['progress']
}

export const migrationView = (migration: IssuerMigration, around: MigrationSurroundings): MigrationView => {
  const { stage } = migration
  return {
    ...{ profile: migration.profile, from: migration.from, to: migration.to },
    stage: migration.forged ? 'forged' : stage.kind,
    percent: stage.kind === 'share' ? stage.percent : null,
    ended_because: stage.kind === 'ended' ? stage.why : null,
    excluded: [...migration.excluded],
    by: migration.by,
    since: isoTime(migration.sinceMs),
    new_away_since: around.away === null ? null : isoTime(around.away.sinceMs),
    new_away_because: around.away?.why ?? null,
    progress: around.progress,
  }
}

const Nodes = Type.Object({ nodes: Type.Array(NodeIdText, { minItems: 1, maxItems: 1000 }) }, closed)
const To = Type.Object({ to: SignerName }, closed)

const step = <P extends string>(path: P) =>
  ({
    method: 'POST',
    path,
    access: 'platform-admin',
    params: MigrationParams,
    answer: MigrationView,
  }) as const

export const migrationApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/issuer-migrations',
    access: 'viewer',
    summary: 'Profiles on their way from one issuer to another, and those that have arrived',
    answer: Type.Object({ migrations: Type.Array(MigrationView) }),
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/issuer-migrations/:profile',
    access: 'viewer',
    summary: 'Where a migration stands, and which nodes are in the way of its next step',
    params: MigrationParams,
    answer: MigrationView,
  }),
  plan: endpoint({
    method: 'GET',
    path: '/v1/issuer-migrations/:profile/plan',
    access: 'viewer',
    summary: 'What a migration would meet; changes nothing',
    params: MigrationParams,
    query: To,
    answer: MigrationPlan,
  }),
  begin: endpoint({
    ...step('/v1/issuer-migrations/:profile'),
    summary: 'Begins a migration: the roots of the new issuer are delivered, and nothing else changes',
    body: To,
  }),
  share: endpoint({
    ...step('/v1/issuer-migrations/:profile/share'),
    summary: 'Lets so many percent of the nodes get their next certificate from the new issuer',
    body: Type.Object({ percent: Type.Integer({ minimum: 1, maximum: 100 }) }, closed),
  }),
  finish: endpoint({
    ...step('/v1/issuer-migrations/:profile/finish'),
    summary: 'Makes the new issuer the one that the profile names; the old one can still take over again',
    body: EmptyRequest,
  }),
  retire: endpoint({
    ...step('/v1/issuer-migrations/:profile/retire'),
    summary: 'Ends a migration: the roots of the old issuer are delivered no more',
    body: EmptyRequest,
  }),
  back: endpoint({
    ...step('/v1/issuer-migrations/:profile/back'),
    summary: 'Takes the last step back; from the first one the migration ends',
    body: EmptyRequest,
  }),
  exclude: endpoint({
    ...step('/v1/issuer-migrations/:profile/exclude'),
    summary: 'Leaves nodes with the old issuer',
    body: Nodes,
  }),
  include: endpoint({
    ...step('/v1/issuer-migrations/:profile/include'),
    summary: 'Takes nodes along again',
    body: Nodes,
  }),
}
