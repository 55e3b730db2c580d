// The way of a profile from one issuer to another while its nodes keep working (docs/decisions/issuers.md). Who signs a certificate is
// decided for each request, from the state of the migration and from what the request itself shows; nothing is remembered of a node.

import type { MayBeForged } from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isoTime } from '#platform/clock.ts'

export type Migration = {
  /** Made when it begins: another migration of the same profile shares its nodes out differently. */
  readonly id: string
  readonly profile: string
  /** Names of issuers. */
  readonly from: string
  readonly to: string
  readonly stage: Stage
  /** Stay with the old issuer until they are included again, because their agents do not confirm. */
  readonly excluded: readonly NodeId[]
}

/** As it is stored: who took it to its stage, and when. */
export type IssuerMigration = Migration & MayBeForged & { readonly by: string; readonly sinceMs: number }

export type Stage =
  /** The root of the new issuer is delivered. */
  | { readonly kind: 'prepare' }
  /** So many percent of the nodes go to the new issuer with their next certificate. */
  | { readonly kind: 'share'; readonly percent: number }
  /** All do. The old issuer still revokes, and can take over again. */
  | { readonly kind: 'finish' }
  /** The root of the old issuer is delivered no more. */
  | { readonly kind: 'retire' }
  /** It was taken back, or one of its issuers was withdrawn. */
  | { readonly kind: 'ended'; readonly why: string }

/** Whoever signs is what the profile says. */
export const isOver = ({ stage }: Pick<Migration, 'stage'>): boolean =>
  stage.kind === 'retire' || stage.kind === 'ended'

/** How far the nodes are, counted now. */
export type Progress = {
  /** Active nodes of the profile whose agents have not confirmed the roots that are delivered. */
  readonly unconfirmed: readonly NodeId[]
  /** Nodes that have an unexpired certificate under the old issuer, revoked ones left out. */
  readonly underOld: readonly NodeId[]
  /** Nodes whose newest certificate is of the new issuer. */
  readonly underNew: readonly NodeId[]
  /** Unexpired certificates of the old issuer on record, also those that their nodes have replaced. `lastMs`: the end of the last one. */
  readonly leaves: { readonly count: number; readonly lastMs: number }
  /** The new issuer answers. */
  readonly newAnswers: boolean
}

/** `nodes`: who is in the way, all of them. */
export type Barred = { readonly kind: 'barred'; readonly why: string; readonly nodes: readonly NodeId[] }
export type Moved = { readonly kind: 'moved'; readonly migration: Migration }

const moved = (migration: Migration, stage: Stage): Moved => ({ kind: 'moved', migration: { ...migration, stage } })
const barred = (why: string, nodes: readonly NodeId[] = []): Barred => ({ kind: 'barred', why, nodes })

const mostExcluded = 1000
/** A step is refused for one as for a thousand. */
export const mostLeavesCounted = 1000

export const beginMigration = (
  wanted: Pick<Migration, 'id' | 'profile' | 'from' | 'to'>,
  /** The migration that the profile is in; null: none. One that has retired is over. */
  present: Migration | null,
): Moved | Barred => {
  if (wanted.from === wanted.to) return barred(`profile ${wanted.profile} is signed by ${wanted.to} already`)
  if (present !== null && !isOver(present))
    return barred(`profile ${wanted.profile} is on its way from ${present.from} to ${present.to}`)
  return moved({ ...wanted, stage: { kind: 'prepare' }, excluded: [] }, { kind: 'prepare' })
}

/** Also from one percentage to another, up or down. */
export const shareOut = (migration: Migration, percent: number, progress: Progress): Moved | Barred => {
  if (!Number.isInteger(percent) || percent < 1 || percent > 100)
    return barred('the percentage is a whole number from 1 to 100')
  const { kind } = migration.stage
  if (kind !== 'prepare' && kind !== 'share') return barred(`it is at ${kind}: a step back comes first (--back)`)
  return notReady(migration, progress) ?? moved(migration, { kind: 'share', percent })
}

export const finish = (migration: Migration, progress: Progress): Moved | Barred => {
  const { stage } = migration
  if (stage.kind === 'prepare') return barred('it is at prepare: --share 100 comes first')
  if (stage.kind !== 'share') return barred(`it is at ${stage.kind} already`)
  if (stage.percent < 100)
    return barred(`${stage.percent} percent of the nodes go to ${migration.to}, and all have to first`)
  return notReady(migration, progress) ?? moved(migration, { kind: 'finish' })
}

const notReady = ({ excluded, to }: Migration, { unconfirmed, newAnswers }: Progress): Barred | null => {
  if (!newAnswers) return barred(`${to} does not answer`)
  const waited = unconfirmed.filter((node) => !excluded.includes(node))
  return waited.length === 0 ? null : barred(`they have not confirmed the root of ${to}: wait, or exclude them`, waited)
}

/** Nothing leads back from here. */
export const retire = (migration: Migration, { unconfirmed, underOld, leaves }: Progress): Moved | Barred => {
  const { stage, from, to, excluded } = migration
  if (stage.kind !== 'finish') return barred(`it is at ${stage.kind}: --finish comes first`)
  if (excluded.length > 0) return barred(`they are excluded, and would be left with ${from}`, excluded)
  if (underOld.length > 0) return barred(`they have certificates of ${from} that have not expired`, underOld)
  if (leaves.count > 0)
    return barred(
      `${leaves.count >= mostLeavesCounted ? 'at least ' : ''}${counted(leaves.count, 'certificate')} of ${from} that nodes have replaced can still be valid; the last ends ${isoTime(leaves.lastMs)}`,
    )
  if (unconfirmed.length > 0) return barred(`they have not confirmed the root of ${to}`, unconfirmed)
  return moved(migration, { kind: 'retire' })
}

/** The certificates above one of them are not trusted any more: what is left signs, and its nodes recover. */
export const endWithdrawn = (migration: Migration, withdrawn: string): Migration & { readonly left: string } => ({
  ...migration,
  stage: { kind: 'ended', why: `${withdrawn} was withdrawn` },
  left: withdrawn === migration.to ? migration.from : migration.to,
})

/** One step back. Nodes that have moved go back with their next certificate; until then the new root is delivered. */
export const goBack = (migration: Migration, { underNew }: Pick<Progress, 'underNew'>): Moved | Barred => {
  switch (migration.stage.kind) {
    case 'prepare':
      if (underNew.length > 0)
        return barred(`they have certificates of ${migration.to}, until their next renewal`, underNew)
      return moved(migration, { kind: 'ended', why: 'it was taken back' })
    case 'share':
      return moved(migration, { kind: 'prepare' })
    case 'finish':
      return moved(migration, { kind: 'share', percent: 100 })
    case 'retire':
      return barred('it is over: the root of the old issuer is not delivered any more')
    case 'ended':
      return barred('it is over')
  }
}

export const exclude = (migration: Migration, nodes: readonly NodeId[]): Moved | Barred => {
  if (isOver(migration)) return barred('it is over')
  const excluded = [...new Set([...migration.excluded, ...nodes])].sort()
  if (excluded.length > mostExcluded) return barred(`at most ${mostExcluded} nodes can be excluded`)
  return { kind: 'moved', migration: { ...migration, excluded } }
}

export const include = (migration: Migration, nodes: readonly NodeId[]): Moved | Barred =>
  isOver(migration)
    ? barred('it is over')
    : {
        kind: 'moved',
        migration: { ...migration, excluded: migration.excluded.filter((node) => !nodes.includes(node)) },
      }

export type Asking = {
  readonly node: NodeId
  /** The request itself says that its agent has the root of the new issuer. Observations may be lost, and decide nothing here. */
  readonly hasRoot: boolean
  readonly newAnswers: boolean
}

/** `because`: why not the new one, where the stage would have it. */
export type Signs = { readonly by: string; readonly because: null | 'excluded' | 'no-root' | 'new-issuer-away' }

/** Who signs the next certificate of this node. */
export const whoSigns = (migration: Migration, { node, hasRoot, newAnswers }: Asking): Signs => {
  const { from, to, stage, excluded } = migration
  if (stage.kind === 'retire') return { by: to, because: null }
  if (
    stage.kind === 'ended' ||
    stage.kind === 'prepare' ||
    (stage.kind === 'share' && placeOf(migration.id, node) >= stage.percent)
  )
    return { by: from, because: null }
  if (excluded.includes(node)) return { by: from, because: 'excluded' }
  if (!hasRoot) return { by: from, because: 'no-root' }
  return newAnswers ? { by: to, because: null } : { by: from, because: 'new-issuer-away' }
}

/** From 0 to 99, the same each time: a higher percentage moves further nodes and none back. */
export const placeOf = (migration: string, node: NodeId): number => {
  // FNV-1a over the UTF-16 units, then mixed: ids that differ in their last digit are to be far apart.
  let hash = 0x811c9dc5
  for (const unit of `${migration}/${node}`) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % 100
}
