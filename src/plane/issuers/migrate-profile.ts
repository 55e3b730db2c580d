// Migrations of profiles: begins them, takes their steps, and ends those whose issuer was withdrawn.

import {
  decideBegin,
  decideEndWithdrawn,
  decideStep,
  type MigrationDecided,
  type MigrationStep,
} from '#domain/issuers/change-migration.ts'
import { isOver, type IssuerMigration, type Progress } from '#domain/issuers/migration.ts'
import { builtIn } from '#domain/issuers/outside-issuer.ts'
import type { Attribution, Row } from '#domain/core/change.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { sortableId } from '#platform/random.ts'
import type { KnownMigrations } from './known-migrations.ts'
import { leavesUnder, noLeaves } from './leaves-under.ts'
import { nodesOnTheWay, type MigrationParts } from './migration-progress.ts'

export type Migrated = { readonly kind: 'migrated'; readonly migration: IssuerMigration }

const migrated = (done: MigrationDecidedOrCommitted | Refusal): Migrated | Refusal =>
  isRefusal(done) ? done : { kind: 'migrated', migration: done.migration }

type MigrationDecidedOrCommitted = Pick<MigrationDecided, 'migration'> & { readonly kind: string }

const standing = async (core: Core, by: Attribution) => ({
  issuers: await readIssuers(core.store),
  ...{ by, nowMs: core.clock.nowMs() },
})

/** Also what a plan asks: it commits nothing. */
export const decideToBegin = async (
  core: Core,
  asked: { readonly profile: string; readonly to: string },
  by: Attribution,
): Promise<MigrationDecided | Refusal> => {
  const profile = await liveProfile(core.store, asked.profile)
  if (isRefusal(profile)) return profile
  const present = await core.store.get('issuer-migration', asked.profile)
  const id = sortableId(core.clock.nowMs(), core.random)
  return decideBegin({ id, to: asked.to, profile, present, ...(await standing(core, by)) })
}

export const beginMigration = async (
  core: Core,
  parts: MigrationParts,
  asked: { readonly profile: string; readonly to: string },
  by: Attribution,
): Promise<Migrated | Refusal> => {
  const done = migrated(await commitDecision(core, () => decideToBegin(core, asked, by)))
  if (isRefusal(done) || parts.roots.holds(asked.to)) return done
  core.log.warn(
    { ...asked },
    'the set of roots is full: the roots of the new issuer are not in it, and nobody can move',
  )
  return done
}

/** Null: the profile never was in one. */
export const readMigration = (core: Pick<Core, 'store'>, profile: string): Promise<Row<IssuerMigration> | null> =>
  core.store.get('issuer-migration', profile)

export const stepMigration = async (
  core: Core,
  parts: MigrationParts,
  { profile: name, step }: { readonly profile: string; readonly step: MigrationStep },
  by: Attribution,
): Promise<Migrated | Refusal> =>
  migrated(
    await commitDecision(core, async () => {
      const migration = await readMigration(core, name)
      if (migration === null) return refuse('MIGRATION_NOT_FOUND', name)
      const profile = await liveProfile(core.store, name)
      if (isRefusal(profile)) return profile
      const unknown = step.kind === 'exclude' ? await notOfProfile(core, name, step.nodes) : null
      if (unknown !== null) return unknown
      const nodes = counts.has(step.kind) ? await nodesOnTheWay(core, parts, migration.value) : uncounted
      // Last: what is signed while they are counted is seen.
      const leaves = step.kind === 'retire' ? await leavesUnder(core, parts, migration.value) : noLeaves
      const progress = { ...nodes, leaves }
      return decideStep({ migration, profile, progress, ...(await standing(core, by)) }, step)
    }),
  )

/** Only these depend on how far the nodes are. */
const counts: ReadonlySet<MigrationStep['kind']> = new Set(['share', 'finish', 'retire', 'back'])
const uncounted: Omit<Progress, 'leaves'> = { unconfirmed: [], underOld: [], underNew: [], newAnswers: true }

const notOfProfile = async (core: Core, profile: string, nodes: readonly string[]): Promise<Refusal | null> => {
  for (const id of nodes) {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    if (node.value.profile !== profile)
      return refuse('MIGRATION_NOT_READY', `${id} is of profile ${node.value.profile}, and not of ${profile}`)
  }
  return null
}

const lookEveryMs = 5000
const migrationsActor: Attribution = { actor: 'system:issuers', source: null, correlation: null }

/** One whose CA was withdrawn signs nothing more that is taken here: the other one does, and its nodes recover. */
export const endWithdrawnMigrations = (
  core: Core,
  parts: Pick<MigrationParts, 'known' | 'book'> & { readonly migrations: Pick<KnownMigrations, 'all'> },
): UpkeepTask => {
  const isWithdrawn = (name: string): boolean => {
    const issuer = name === builtIn ? null : parts.known.find(name)
    if (issuer === null) return false
    const gone = new Set(parts.book.withdrawn())
    return parts.book.authoritiesOf(issuer).some((id) => gone.has(id))
  }
  return {
    name: 'issuer migrations',
    where: 'leader',
    everyMs: lookEveryMs,
    async run(asLeader) {
      const leading = withStore(core, asLeader)
      for (const { profile: name, from, to } of parts.migrations.all()) {
        const withdrawn = [to, from].find(isWithdrawn)
        if (withdrawn === undefined) continue
        const done = await commitDecision(leading, async () => {
          const migration = await readMigration(leading, name)
          if (migration === null || isOver(migration.value)) return refuse('MIGRATION_NOT_FOUND', name)
          const profile = await liveProfile(leading.store, name)
          if (isRefusal(profile)) return profile
          return decideEndWithdrawn({ migration, profile, ...(await standing(leading, migrationsActor)) }, withdrawn)
        })
        core.log.warn(
          { profile: name, withdrawn, outcome: done.kind },
          'a migration has ended: its issuer was withdrawn',
        )
      }
    },
  }
}
