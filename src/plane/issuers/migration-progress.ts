// How far the nodes of a profile are on their way to another issuer, counted from their rows and from what their agents have said.

import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import type { IssuerId, NodeId } from '#domain/core/node.ts'
import type { Migration, Progress } from '#domain/issuers/migration.ts'
import { builtIn, type OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Core } from '#plane/core/core.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { IssuerRootSet } from './issuer-roots.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { OutsideBook } from './outside-book.ts'
import type { OutsideIssuers } from './open-outside-issuers.ts'

export type MigrationParts = {
  readonly known: Pick<KnownIssuers, 'find'>
  readonly book: Pick<OutsideBook, 'authoritiesOf' | 'find' | 'withdrawn'>
  readonly roots: IssuerRootSet
  readonly outside: Pick<OutsideIssuers, 'health'>
}

/** `older`: of those that have not confirmed, those whose agents have never said that they know such a set, as those of 0.6. */
export type NodesOnTheWay = Omit<Progress, 'leaves'> & {
  readonly active: number
  readonly older: readonly NodeId[]
  readonly away: { readonly sinceMs: number; readonly why: string } | null
}

export const nodesOnTheWay = async (
  { store, clock, timers }: Pick<Core, 'store' | 'clock' | 'timers'>,
  parts: MigrationParts,
  { profile, from, to }: Pick<Migration, 'profile' | 'from' | 'to'>,
): Promise<NodesOnTheWay> => {
  const nowMs = clock.nowMs()
  const { revision } = parts.roots.current()
  const [isOld, isNew] = [underOnly(parts, from, to), underOnly(parts, to, from)]
  const found = {
    unconfirmed: [] as NodeId[],
    older: [] as NodeId[],
    underOld: [] as NodeId[],
    underNew: [] as NodeId[],
  }
  let active = 0
  for await (const node of everyNode(store, { profile, timers })) {
    const slots = slotsOf(node)
    if (slots === null || node.membership.kind === 'revoked') continue
    const newest = slots.pending ?? slots.current
    if (isNew(newest.issuer)) found.underNew.push(node.id)
    if (everySlot(slots).some(({ issuer, notAfterMs }) => notAfterMs > nowMs && isOld(issuer)))
      found.underOld.push(node.id)
    if (node.membership.kind !== 'active') continue
    active += 1
    const { issuerRoots } = await store.observation(node.id)
    if (issuerRoots === revision) continue
    found.unconfirmed.push(node.id)
    if (issuerRoots === null) found.older.push(node.id)
  }
  const issuer = to === builtIn ? null : parts.known.find(to)
  const away = issuer === null ? null : parts.outside.health(issuer).away
  return { ...found, active, away, newAnswers: to === builtIn || (issuer !== null && away === null) }
}

/** Two issuers may hang under the same CA: what is under both stays good whichever of them signs. */
export const underOnly = (
  parts: Pick<MigrationParts, 'known' | 'book'>,
  name: string,
  other: string,
): ((issuer: IssuerId) => boolean) => {
  const [is, isOther] = [signedBy(parts, name), signedBy(parts, other)]
  return (id) => is(id) && !isOther(id)
}

/** What is not of an outside issuer is of the authority of the domain. */
const signedBy = (
  { known, book }: Pick<MigrationParts, 'known' | 'book'>,
  name: string,
): ((issuer: IssuerId) => boolean) => {
  if (name === builtIn) return (id) => book.find(id) === null
  const issuer: OutsideIssuer | null = known.find(name)
  const theirs = new Set(issuer === null ? [] : book.authoritiesOf(issuer))
  return (id) => theirs.has(id)
}
