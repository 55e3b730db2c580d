// What operators do to the migration of a profile, as changes: its row, the profile where another issuer becomes the one it names, and an
// entry. Which step is allowed is in migration.ts.

import {
  decided,
  entry,
  forgedWords,
  readOf,
  type Attribution,
  type Decided,
  type Read,
  type Row,
} from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  beginMigration,
  endWithdrawn,
  exclude,
  finish,
  goBack,
  include,
  isOver,
  retire,
  shareOut,
  type Barred,
  type IssuerMigration,
  type Migration,
  type Moved,
  type Progress,
  type Stage,
} from './migration.ts'
import { builtIn, type OutsideIssuer } from './outside-issuer.ts'
import { unfitForProfile } from './profile-issuer.ts'

export type MigrationStep =
  | { readonly kind: 'share'; readonly percent: number }
  | { readonly kind: 'finish' | 'retire' | 'back' }
  | { readonly kind: 'exclude' | 'include'; readonly nodes: readonly NodeId[] }

export type MigrationDecided = Decided & { readonly migration: IssuerMigration }

type Standing = {
  readonly profile: Row<Profile>
  /** Every outside issuer there is or was. */
  readonly issuers: readonly Row<OutsideIssuer>[]
  readonly by: Attribution
  readonly nowMs: number
}

export type BeginFacts = Standing & {
  /** A new one. */
  readonly id: string
  readonly to: string
  readonly present: Row<IssuerMigration> | null
}

/** The issuer that a profile goes to has to be one that it may name. */
export const decideBegin = (facts: BeginFacts): MigrationDecided | Refusal => {
  const { id, profile, to, present, issuers } = facts
  const forged = present === null ? null : notOurs(present.value)
  if (forged !== null) return forged
  const fit = fitFor(profile.value, to, issuers)
  if (isRefusal(fit)) return fit
  const { name, certificate } = profile.value
  const begun = beginMigration({ id, profile: name, from: certificate.issuer, to }, present?.value ?? null)
  if (begun.kind === 'barred') return refused(begun)
  const from = fitFrom(certificate.issuer, issuers)
  return written(facts, present, begun.migration, [...fit, ...from], null)
}

export type StepFacts = Standing & { readonly migration: Row<IssuerMigration>; readonly progress: Progress }

export const decideStep = (facts: StepFacts, step: MigrationStep): MigrationDecided | Refusal => {
  const { migration: row, profile, issuers, progress } = facts
  const forged = notOurs(row.value)
  // That ends what a stranger has written, and leaves the profile as it is.
  if (forged !== null) return step.kind === 'back' ? written(facts, row, endForged(row.value), [], null) : forged
  if (isOver(row.value)) return refuse('MIGRATION_NOT_FOUND', row.value.profile)
  const outcome = taken(row.value, step, progress)
  if (outcome.kind === 'barred') return refused(outcome)
  const { migration } = outcome
  const named = namedAt(migration)
  const isNamed = named === profile.value.certificate.issuer
  // Who is to sign more from here on has to be one that the profile may name.
  const signs = step.kind === 'share' ? migration.to : isNamed ? null : named
  const fit = signs === null ? [] : fitFor(profile.value, signs, issuers)
  if (isRefusal(fit)) return fit
  return written(facts, row, migration, fit, isNamed ? null : named)
}

/** One of its issuers has been withdrawn. */
export const decideEndWithdrawn = (
  facts: Standing & { readonly migration: Row<IssuerMigration> },
  withdrawn: string,
): MigrationDecided => {
  const { left, ...ended } = endWithdrawn(facts.migration.value, withdrawn)
  return written(facts, facts.migration, ended, [], left === facts.profile.value.certificate.issuer ? null : left)
}

const taken = (migration: Migration, step: MigrationStep, progress: Progress): Moved | Barred => {
  switch (step.kind) {
    case 'share':
      return shareOut(migration, step.percent, progress)
    case 'finish':
      return finish(migration, progress)
    case 'retire':
      return retire(migration, progress)
    case 'back':
      return goBack(migration, progress)
    case 'exclude':
      return exclude(migration, step.nodes)
    case 'include':
      return include(migration, step.nodes)
  }
}

/** The issuer that the profile names at this stage. */
const namedAt = ({ stage, from, to }: Migration): string => {
  switch (stage.kind) {
    case 'prepare':
    case 'share':
    case 'ended':
      return from
    case 'finish':
    case 'retire':
      return to
  }
}

const endForged = (migration: Migration): Migration => ({
  ...migration,
  stage: { kind: 'ended', why: 'its row was not one that a plane of this domain wrote' },
})

/** What such a row says is not followed. */
const notOurs = ({ forged, profile }: IssuerMigration): Refusal | null =>
  forged ? refuse('ISSUER_ROW_FORGED', `the migration of ${profile}: ${forgedWords}`) : null

const fitFor = (profile: Profile, name: string, issuers: Standing['issuers']): readonly Read[] | Refusal => {
  if (name === builtIn) return []
  const row = issuers.find(({ value }) => value.name === name) ?? null
  const named = { ...profile, certificate: { ...profile.certificate, issuer: name } }
  return unfitForProfile(named, row?.value ?? null) ?? [readOf('outside-issuer', name, row)]
}

/** It must not retire meanwhile. */
const fitFrom = (name: string, issuers: Standing['issuers']): readonly Read[] => {
  const row = issuers.find(({ value }) => value.name === name)
  return row === undefined ? [] : [readOf('outside-issuer', name, row)]
}

/** More are counted. */
const mostNamed = 40

const refused = ({ why, nodes }: Barred): Refusal => {
  const named = nodes.slice(0, mostNamed).join(', ')
  const others = nodes.length > mostNamed ? ` and ${nodes.length - mostNamed} more` : ''
  return refuse(
    'MIGRATION_NOT_READY',
    nodes.length === 0 ? why : `${counted(nodes.length, 'node')}: ${why}: ${named}${others}`,
  )
}

const written = (
  { profile, by, nowMs }: Pick<Standing, 'profile' | 'by' | 'nowMs'>,
  from: Row<IssuerMigration> | null,
  next: Migration,
  relied: readonly Read[],
  /** The issuer that the profile is to name; null: it stays. */
  named: string | null,
): MigrationDecided => {
  const migration: IssuerMigration = {
    ...{ id: next.id, profile: next.profile, from: next.from, to: next.to },
    ...{ stage: next.stage, excluded: next.excluded, by: by.actor, sinceMs: nowMs },
  }
  const { name, certificate } = profile.value
  const type = isOver(next)
    ? 'issuer.migration_ended'
    : from === null || from.value.id !== next.id
      ? 'issuer.migration_begun'
      : 'issuer.migration_moved'
  const body = {
    ...{ migration: next.id, profile: name, from: next.from, to: next.to, stage: stageText(next.stage) },
    ...{ excluded: next.excluded.length, issuer_named: named ?? certificate.issuer },
  }
  const renamed = named === null ? [] : [{ ...profile.value, certificate: { ...certificate, issuer: named } }]
  return {
    ...decided({
      reads: [readOf('issuer-migration', name, from), readOf('profile', name, profile), ...relied],
      writes: [
        { put: 'issuer-migration', value: migration },
        ...renamed.map((value) => ({ put: 'profile', value }) as const),
      ],
      entries: [entry(by, nowMs, type, {}, body)],
    }),
    migration,
  }
}

const stageText = (stage: Stage): string => {
  switch (stage.kind) {
    case 'prepare':
    case 'finish':
    case 'retire':
      return stage.kind
    case 'share':
      return `share ${stage.percent} %`
    case 'ended':
      return `ended: ${stage.why}`
  }
}

/** Under way, with the issuer on either side. */
export const migrationsWith = (issuer: string, all: readonly Row<IssuerMigration>[]): readonly string[] =>
  all
    .filter(({ value }) => !isOver(value) && (value.from === issuer || value.to === issuer))
    .map(({ value }) => value.profile)
