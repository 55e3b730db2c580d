// Migrations: what operators see of them, and the steps that they take.

import type { MigrationStep } from '#domain/issuers/change-migration.ts'
import { isOver, type IssuerMigration } from '#domain/issuers/migration.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Core } from '#plane/core/core.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { everyRow } from '#plane/core/pages.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import type { Attribution } from '#domain/core/change.ts'
import { migrationApi, migrationView, type MigrationPlan, type MigrationView } from '#wire/issuers/migration-api.ts'
import { beginMigration, decideToBegin, readMigration, stepMigration, type Migrated } from './migrate-profile.ts'
import { nodesOnTheWay, type MigrationParts } from './migration-progress.ts'

export const operatorMigrationRoutes = (core: Core, parts: MigrationParts): readonly Route[] => {
  const shown = async (done: Migrated | Refusal, status?: 201) =>
    isRefusal(done) ? done : answer(await viewOf(core, parts, done.migration), status)
  const taken = async (profile: string, step: MigrationStep, by: Attribution) =>
    shown(await stepMigration(core, parts, { profile, step }, by))
  return serve(migrationApi, {
    list: async () => {
      const migrations: MigrationView[] = []
      for await (const migration of everyRow(core.store, 'issuer-migration', ({ profile }) => profile))
        migrations.push(await viewOf(core, parts, migration))
      return answer({ migrations })
    },
    show: async ({ params: { profile } }) => {
      const row = await readMigration(core, profile)
      return row === null ? refuse('MIGRATION_NOT_FOUND', profile) : answer(await viewOf(core, parts, row.value))
    },
    plan: async (call) => {
      const asked = { profile: call.params.profile, to: call.query.to }
      const planned = await planOf(core, parts, asked, attributionOf(call))
      return isRefusal(planned) ? planned : answer(planned)
    },
    begin: async (call) => {
      const asked = { profile: call.params.profile, to: call.body.to }
      return shown(await beginMigration(core, parts, asked, attributionOf(call)))
    },
    share: async (call) =>
      taken(call.params.profile, { kind: 'share', percent: call.body.percent }, attributionOf(call)),
    finish: async (call) => taken(call.params.profile, { kind: 'finish' }, attributionOf(call)),
    retire: async (call) => taken(call.params.profile, { kind: 'retire' }, attributionOf(call)),
    back: async (call) => taken(call.params.profile, { kind: 'back' }, attributionOf(call)),
    exclude: async (call) =>
      taken(call.params.profile, { kind: 'exclude', nodes: call.body.nodes }, attributionOf(call)),
    include: async (call) =>
      taken(call.params.profile, { kind: 'include', nodes: call.body.nodes }, attributionOf(call)),
  })
}

const viewOf = async (core: Core, parts: MigrationParts, migration: IssuerMigration): Promise<MigrationView> => {
  if (isOver(migration) || migration.forged) return migrationView(migration, { away: null, progress: null })
  const { away, active, underNew, unconfirmed, older, underOld } = await nodesOnTheWay(core, parts, migration)
  return migrationView(migration, {
    away,
    progress: {
      ...{
        active,
        moved: underNew.length,
        unconfirmed: [...unconfirmed],
        older_agents: [...older],
        under_old: [...underOld],
      },
      roots_revision: parts.roots.current().revision,
      roots_delivered: parts.roots.holds(migration.to),
    },
  })
}

const planOf = async (
  core: Core,
  parts: MigrationParts,
  asked: { readonly profile: string; readonly to: string },
  by: Attribution,
): Promise<MigrationPlan | Refusal> => {
  const decided = await decideToBegin(core, asked, by)
  if (isRefusal(decided)) return decided
  const profile = await liveProfile(core.store, asked.profile)
  if (isRefusal(profile)) return profile
  const { from, to } = decided.migration
  const { active, older, underOld, away } = await nodesOnTheWay(core, parts, decided.migration)
  const { lifetimeMs } = profile.value.certificate
  return {
    ...{ profile: asked.profile, from, to, active, older_agents: [...older] },
    under_old: underOld.length,
    lifetime_ms: lifetimeMs,
    notes: [
      ...(away === null ? [] : [`${to} does not answer now: ${away.why}`]),
      ...(older.length === 0
        ? []
        : [
            `${counted(older.length, 'agent')} never said that they know roots of issuers (0.6 does not): upgrade them, or exclude their nodes by name before anything is shared out`,
          ]),
      `verifiers outside Muster cannot be counted: give each of them the roots of ${to} before anything is shared out`,
      'leaves of programs stay with the issuer that their output names, and server certificates with the authority of the domain',
      `the roots of ${from} can be retired once its last certificate has expired, up to ${durationWords(lifetimeMs)} after all nodes have moved`,
    ],
  }
}
