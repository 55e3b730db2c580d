// Which issuer signs the next certificate of a node: the one that its profile names, or one of two while the profile is in a migration.

import { readOf, type Read } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isOver, whoSigns } from '#domain/issuers/migration.ts'
import type { Core } from '#plane/core/core.ts'
import type { IssuerRootSet } from './issuer-roots.ts'
import type { KnownMigrations } from './known-migrations.ts'

/**
 * What a request says about the roots of issuers: the revision that its agent has on its disk; null: nothing. `with-answer`: of an enrollment,
 * which has no older set, and gets this one with its certificate.
 */
export type SaidRoots = number | null | 'with-answer'

export type IssuerAsked = {
  readonly node: NodeId
  readonly roots: SaidRoots
  /** An issuer that has just failed for this very request. */
  readonly away: string | null
}

export type ChosenIssuer = {
  readonly issuer: string
  /** What the choice relies on. */
  readonly reads: readonly Read[]
  /** Another one signs where this one cannot now. */
  readonly hasOther: boolean
}

export type IssuerChoice = {
  choose(profile: Pick<Profile, 'name' | 'certificate'>, asked: IssuerAsked): Promise<ChosenIssuer>
  /** What relies on it that what this issuer signed a moment ago is handed out; null: it is not. */
  stillSigns(profile: Pick<Profile, 'name' | 'certificate'>, issuer: string): Promise<readonly Read[] | null>
}

export const openIssuerChoice = (
  { store }: Pick<Core, 'store'>,
  { migrations, roots }: { readonly migrations: Pick<KnownMigrations, 'of'>; readonly roots: IssuerRootSet },
): IssuerChoice => ({
  async choose({ name, certificate }, { node, roots: said, away }) {
    const usual: ChosenIssuer = { issuer: certificate.issuer, reads: [], hasOther: false }
    if (migrations.of(name) === null) return usual
    const row = await store.get('issuer-migration', name)
    if (row === null || isOver(row.value) || row.value.forged) return usual
    const hasRoot = said === 'with-answer' || (said === roots.current().revision && roots.holds(row.value.to))
    const { by } = whoSigns(row.value, { node, hasRoot, newAnswers: away !== row.value.to })
    return { issuer: by, reads: [readOf('issuer-migration', name, row)], hasOther: by === row.value.to }
  },
  async stillSigns({ name, certificate }, issuer) {
    const row = migrations.of(name) === null ? null : await store.get('issuer-migration', name)
    if (row === null || isOver(row.value) || row.value.forged) return certificate.issuer === issuer ? [] : null
    return [row.value.from, row.value.to].includes(issuer) ? [readOf('issuer-migration', name, row)] : null
  },
})
