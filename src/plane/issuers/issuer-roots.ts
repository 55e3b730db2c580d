// The set of roots that agents get beside those of the plane (docs/decisions/issuers.md). It is made of rows that every replica has, and its
// revision of its content, so all of them have the same one.

import type { Profile } from '#domain/core/profile.ts'
import { issuersInSet } from '#domain/issuers/issuer-set.ts'
import { builtIn } from '#domain/issuers/outside-issuer.ts'
import { toPem } from '#pki/pem.ts'
import { revisionOf } from '#plane/core/configuration.ts'
import type { Core } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { longestIssuerRoots, mostIssuerRoots, type IssuerRoots } from '#wire/identity/identity-api.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { KnownMigrations } from './known-migrations.ts'
import type { OutsideBook } from './outside-book.ts'

export type IssuerRootSet = {
  current(): IssuerRoots
  /** All roots of this issuer are in the set. */
  holds(issuer: string): boolean
}

type Parts = {
  readonly known: Pick<KnownIssuers, 'find'>
  readonly book: Pick<OutsideBook, 'rootsOf'>
  readonly own: Pick<Issuer, 'roots'>
  readonly migrations: Pick<KnownMigrations, 'all'>
}

const concerned: ReadonlySet<string> = new Set(['profile', 'outside-issuer', 'issuer', 'issuer-migration'])

export const openIssuerRoots = async (
  { store, feed }: Pick<Core, 'store' | 'feed'>,
  { known, book, own, migrations }: Parts,
): Promise<IssuerRootSet> => {
  const profiles = new Map<string, Profile>()
  let made: { readonly own: string; readonly set: IssuerRoots } | null = null
  feed.subscribe('roots of issuers', ({ writes }) => {
    for (const write of writes) if (write.put === 'profile') profiles.set(write.value.name, write.value)
    // The listeners that it is made from may come after this one: it is made when it is asked for.
    if (writes.some(({ put }) => concerned.has(put))) made = null
  })
  for (const { value } of await store.profiles()) if (!profiles.has(value.name)) profiles.set(value.name, value)

  const rootsOf = (name: string): readonly string[] => {
    if (name === builtIn) return own.roots()
    const issuer = known.find(name)
    return issuer === null || issuer.forged ? [] : book.rootsOf(issuer).map((der) => toPem('CERTIFICATE', der))
  }
  const current = (): IssuerRoots => {
    const ours = own.roots().join('')
    if (made?.own !== ours) {
      const roots = withinBounds(issuersInSet([...profiles.values()], migrations.all()).flatMap(rootsOf)).sort()
      made = { own: ours, set: { revision: roots.length === 0 ? 0 : revisionOf(roots), roots } }
    }
    return made.set
  }
  return { current, holds: (issuer) => rootsOf(issuer).every((root) => current().roots.includes(root)) }
}

/** What is beyond them is left out: agents take no larger set, and would confirm none. */
const withinBounds = (roots: readonly string[]): string[] => {
  const kept: string[] = []
  let length = 0
  for (const root of new Set(roots)) {
    if (kept.length === mostIssuerRoots || length + root.length > longestIssuerRoots) break
    kept.push(root)
    length += root.length
  }
  return kept
}
