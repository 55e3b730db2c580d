// What operators do to outside issuers: add, change, test, disable, enable, retire. An issuer is its id; the name is free again once it has
// retired. Nothing here signs or asks anything.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import {
  decided,
  entry,
  forgedWords,
  readOf,
  withPart,
  type Attribution,
  type Decided,
  type Row,
  type Write,
} from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import { issuerNameShape } from '#domain/core/issuer-name.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isoTime } from '#platform/clock.ts'
import { migrationsWith } from './change-migration.ts'
import type { IssuerMigration } from './migration.ts'
import { namingIt, type NamingRows } from './naming-issuer.ts'
import {
  builtIn,
  type IssuerAbilities,
  type IssuerAccess,
  type OutsideIssuer,
  type SecretsHeld,
} from './outside-issuer.ts'

/** Each has sockets, a breaker and a place in the set of roots of every node. Several that are added at once may come to a few more. */
const mostIssuers = 16
/** A root, its successor, and an issuing CA of each. */
const mostRoots = 8

/** One of the CA certificates above its leaves, read from what the operator gave. */
export type GivenAuthority = Pick<IssuerRow, 'id' | 'der' | 'parent' | 'notBeforeMs' | 'notAfterMs'> & {
  /** As its leaves name it; null: it has none. */
  readonly subjectKeyId: string | null
}

/** One that is on record, with what its leaves name it by. */
export type KnownAuthority = { readonly row: Row<IssuerRow>; readonly subjectKeyId: string | null }

export type AskedIssuer = {
  readonly url: string
  /** PEM. */
  readonly serverRoots: readonly string[]
  readonly authorities: readonly GivenAuthority[]
  readonly access: IssuerAccess
}

export type IssuerDecided = Decided & { readonly issuer: OutsideIssuer }

type Standing = {
  /** Every outside issuer there is or was. */
  readonly all: readonly Row<OutsideIssuer>[]
  /** Every authority on record. */
  readonly known: readonly KnownAuthority[]
  readonly by: Attribution
  readonly nowMs: number
}

export type AddIssuerFacts = Standing & {
  readonly name: string
  /** A new one. */
  readonly id: string
  readonly asked: AskedIssuer
  readonly secrets: SecretsHeld
}

export const decideAddIssuer = (facts: AddIssuerFacts): IssuerDecided | Refusal => {
  const { name, id, asked, all, secrets, by, nowMs } = facts
  const unfitName = nameProblem(name)
  if (unfitName !== null) return unfitName
  const existing = all.find(({ value }) => value.name === name) ?? null
  if (existing !== null && existing.value.state.kind !== 'retired') return refuse('ISSUER_EXISTS', name)
  const serving = all.filter(({ value }) => value.state.kind !== 'retired').length
  if (serving >= mostIssuers) return refuse('ISSUER_LIMIT', `there are ${serving}, and at most ${mostIssuers}`)
  const authorities = takeAuthorities(facts)
  if ('kind' in authorities) return authorities
  const issuer: OutsideIssuer = {
    ...{ id, name, url: asked.url, serverRoots: asked.serverRoots, access: asked.access, secrets },
    roots: authorities.roots,
    abilities: null,
    state: { kind: 'enabled' },
    addedAtMs: nowMs,
    addedBy: by.actor,
  }
  return written(existing, issuer, authorities, entry(by, nowMs, 'issuer.added', {}, said(issuer)))
}

const nameProblem = (name: string): Refusal | null => {
  if (name === builtIn) return refuseField('REQUEST_INVALID', 'name', `${builtIn} is the authority of the domain`)
  return issuerNameShape.test(name)
    ? null
    : refuseField('REQUEST_INVALID', 'name', 'a name takes 1 to 32 lower-case letters, digits and dashes')
}

type Taken = Pick<OutsideIssuer, 'roots'> & {
  readonly writes: readonly Write[]
  readonly rows: readonly KnownAuthority[]
}

/** What is not on record yet gets a row. One of our own is none of theirs: its leaves would be taken for signed here. */
const takeAuthorities = ({ asked, known, nowMs }: Standing & { readonly asked: AskedIssuer }): Taken | Refusal => {
  const { authorities } = asked
  const no = (why: string): Refusal => refuseField('REQUEST_INVALID', 'roots', why)
  const roots = authorities.filter(({ id, parent }) => id === parent).map(({ id }) => id)
  if (roots.length === 0) return no('roots holds no self-signed certificate')
  if (authorities.length > mostRoots) return no(`roots takes at most ${mostRoots} certificates`)
  const writes: Write[] = []
  const rows: KnownAuthority[] = []
  for (const authority of authorities) {
    const { subjectKeyId, ...row } = authority
    if (row.notAfterMs <= nowMs) return no(`the authority ${row.id} ended ${isoTime(row.notAfterMs)}`)
    if (subjectKeyId === null)
      return no(`the authority ${row.id} has no subject key identifier, which leaves name it by`)
    if (!authorities.some(({ id }) => id === row.parent) && !known.some((one) => one.row.value.id === row.parent))
      return no(`the authority above ${row.id} is not among roots`)
    const same = known.find((one) => one.row.value.id === row.id)
    if (same !== undefined) {
      const unfit = unfitOnRecord(same.row.value)
      if (unfit !== null) return no(`${row.id} ${unfit}`)
      rows.push(same)
      continue
    }
    const twin = [
      ...known.map((one) => ({ id: one.row.value.id, subjectKeyId: one.subjectKeyId })),
      ...authorities,
    ].find((one) => one.subjectKeyId === subjectKeyId && one.id !== row.id)
    if (twin !== undefined)
      return no(`${row.id} has the same subject key identifier as ${twin.id}, which has another key`)
    const role = row.id === row.parent ? 'outside-root' : 'outside-issuing'
    writes.push({
      put: 'issuer',
      value: { ...row, role, custody: 'offline', retiredAtMs: null, compromisedAtMs: null },
    })
  }
  return { roots, writes, rows }
}

const unfitOnRecord = ({ role, compromisedAtMs }: IssuerRow): string | null => {
  if (role !== 'outside-root' && role !== 'outside-issuing') return 'is an authority of this domain'
  return compromisedAtMs === null ? null : 'has been withdrawn'
}

/** What is left out stays. */
export type ChangeIssuerFacts = Standing & {
  readonly issuer: Row<OutsideIssuer>
  readonly asked: AskedIssuer
  /** Null: those that are there. */
  readonly secrets: SecretsHeld | null
}

export const changedParts = (before: OutsideIssuer, after: OutsideIssuer): readonly string[] =>
  (['url', 'serverRoots', 'roots', 'access', 'secrets'] as const).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  )

export const decideChangeIssuer = (
  facts: ChangeIssuerFacts,
): IssuerDecided | { readonly kind: 'unchanged'; readonly issuer: OutsideIssuer } | Refusal => {
  const { issuer, asked, secrets, by, nowMs } = facts
  const before = issuer.value
  const no = notThere(before)
  if (no !== null) return no
  if (before.access.kind !== asked.access.kind)
    return refuseField(
      'REQUEST_INVALID',
      'kind',
      `${before.name} is of kind ${before.access.kind}: retire it, and add another`,
    )
  const authorities = takeAuthorities(facts)
  if ('kind' in authorities) return authorities
  const left = before.roots.filter((root) => !authorities.roots.includes(root))
  // Leaves that were signed under it are in use: it goes with the issuer.
  if (left.length > 0)
    return refuseField('REQUEST_INVALID', 'roots', `${left.join(', ')} stays until ${before.name} retires`)
  const after: OutsideIssuer = {
    ...before,
    ...{ url: asked.url, serverRoots: asked.serverRoots, access: asked.access },
    roots: authorities.roots,
    secrets: secrets ?? before.secrets,
  }
  const changed = changedParts(before, after)
  if (changed.length === 0) return { kind: 'unchanged', issuer: before }
  const body = { ...said(after), changed }
  return written(issuer, after, authorities, entry(by, nowMs, 'issuer.changed', {}, body))
}

type Facts = { readonly issuer: Row<OutsideIssuer>; readonly by: Attribution; readonly nowMs: number }

/** Null: it is there, and ours. */
export const notThere = ({ name, state, forged }: OutsideIssuer): Refusal | null => {
  if (state.kind === 'retired') return refuse('OUTSIDE_ISSUER_NOT_FOUND', name)
  return forged ? refuse('ISSUER_ROW_FORGED', `${name}: ${forgedWords}`) : null
}

export const decideTested = (
  { issuer, by, nowMs }: Facts,
  abilities: Omit<IssuerAbilities, 'testedAtMs'>,
): IssuerDecided | Refusal => {
  const no = notThere(issuer.value)
  if (no !== null) return no
  const tested: OutsideIssuer = { ...issuer.value, abilities: { ...abilities, testedAtMs: nowMs } }
  return written(
    issuer,
    tested,
    noAuthorities,
    entry(by, nowMs, 'issuer.tested', {}, { ...said(tested), ...abilities }),
  )
}

export const decideDisable = ({ issuer, by, nowMs }: Facts, why: string): IssuerDecided | Refusal => {
  const no = notThere(issuer.value)
  if (no !== null) return no
  if (issuer.value.state.kind === 'disabled')
    return refuse('ISSUER_STATE_CONFLICT', `${issuer.value.name} is disabled already`)
  const disabled: OutsideIssuer = { ...issuer.value, state: { kind: 'disabled', sinceMs: nowMs, by: by.actor, why } }
  return written(issuer, disabled, noAuthorities, entry(by, nowMs, 'issuer.disabled', {}, { ...said(disabled), why }))
}

export const decideEnable = ({ issuer, by, nowMs }: Facts): IssuerDecided | Refusal => {
  const no = notThere(issuer.value)
  if (no !== null) return no
  if (issuer.value.state.kind !== 'disabled')
    return refuse('ISSUER_STATE_CONFLICT', `${issuer.value.name} is not disabled`)
  const enabled: OutsideIssuer = { ...issuer.value, state: { kind: 'enabled' } }
  return written(issuer, enabled, noAuthorities, entry(by, nowMs, 'issuer.enabled', {}, said(enabled)))
}

/** What the plane proves itself with there is another one; what it has signed so far is not touched. */
export const decideNewCredential = ({ issuer, by, nowMs }: Facts, secrets: SecretsHeld): IssuerDecided => {
  const renewed: OutsideIssuer = { ...issuer.value, secrets }
  const body = { ...said(renewed), changed: ['secrets'] }
  return written(issuer, renewed, noAuthorities, entry(by, nowMs, 'issuer.changed', {}, body))
}

export type RetireFacts = Facts &
  NamingRows & {
    /** Every other one that has not retired, with the roots that it still needs. */
    readonly others: readonly OutsideIssuer[]
    readonly known: readonly KnownAuthority[]
    /** All of them, also those that are over. */
    readonly migrations: readonly Row<IssuerMigration>[]
    /** Certificates, and attempts that may have become one, that have not expired and are not revoked there. */
    readonly unexpired: number
    /** Until when the last of them may last. */
    readonly lastMs: number | null
    /** Revocations on their way there, also of certificates that have ended a moment ago. */
    readonly waiting: number
  }

/** A row that is not ours can be retired: that takes trust away, and is the way to add it anew. */
export const decideRetire = (facts: RetireFacts): IssuerDecided | Refusal => {
  const { issuer, others, known, profiles, vclusters, workerIssuers, migrations, unexpired, lastMs, waiting } = facts
  const { by, nowMs } = facts
  const { name, state, roots, forged } = issuer.value
  if (state.kind === 'retired') return refuse('OUTSIDE_ISSUER_NOT_FOUND', name)
  const namedBy = namingIt(name, facts)
  if (namedBy !== null) return refuse('ISSUER_IN_USE', namedBy)
  const moving = migrationsWith(name, migrations)
  if (moving.length > 0)
    return refuse('ISSUER_IN_USE', `the profiles that are on their way from or to it: ${moving.slice(0, 8).join(', ')}`)
  if (unexpired > 0)
    return refuse(
      'ISSUER_IN_USE',
      `${counted(unexpired, 'certificate')} of it can still be valid${lastMs === null ? '' : `; the last ends ${isoTime(lastMs)}`}`,
    )
  // Nobody would end them once it has retired. Those of a row that is not ours are not sent.
  if (waiting > 0 && !forged)
    return refuse(
      'ISSUER_IN_USE',
      `${counted(waiting, 'revocation')} of certificates that have ended wait to be given up`,
    )
  const retired: OutsideIssuer = {
    ...withoutMark(issuer.value),
    secrets: null,
    state: { kind: 'retired', atMs: nowMs, by: by.actor },
  }
  const kept = new Set(others.flatMap((one) => one.roots))
  const gone = forged
    ? new Set<IssuerId>()
    : withBelow(
        roots.filter((root) => !kept.has(root)),
        known,
      )
  const rows = known.filter(({ row: { value } }) => gone.has(value.id) && value.retiredAtMs === null)
  const writes = rows.map(({ row }): Write => ({ put: 'issuer', value: { ...row.value, retiredAtMs: nowMs } }))
  const decision = written(
    issuer,
    retired,
    { roots, writes, rows },
    entry(by, nowMs, 'issuer.retired', {}, said(retired)),
  )
  const reads = [
    ...profiles.map((profile) => readOf('profile', profile.value.name, profile)),
    ...vclusters.map((vcluster) => readOf('vcluster', vcluster.value.name, vcluster)),
    ...workerIssuers.map((one) => readOf('worker-issuer', one.value.name, one)),
    ...migrations.map((one) => readOf('issuer-migration', one.value.profile, one)),
  ]
  return { ...decision, change: withPart(decision.change, { reads }) }
}

const withoutMark = (issuer: OutsideIssuer): OutsideIssuer => {
  const { forged: _, ...genuine } = issuer
  return genuine
}

const withBelow = (roots: readonly IssuerId[], known: readonly KnownAuthority[]): ReadonlySet<IssuerId> => {
  const all = new Set(roots)
  for (let before = -1; before !== all.size;) {
    before = all.size
    for (const { row } of known) if (all.has(row.value.parent)) all.add(row.value.id)
  }
  return all
}

const noAuthorities: Taken = { roots: [], writes: [], rows: [] }

const written = (
  from: Row<OutsideIssuer> | null,
  issuer: OutsideIssuer,
  { writes, rows }: Taken,
  said_: ReturnType<typeof entry>,
): IssuerDecided => ({
  ...decided({
    reads: [
      readOf('outside-issuer', issuer.name, from),
      ...rows.map(({ row }) => readOf('issuer', row.value.id, row)),
      ...writes.flatMap(({ put, value }) =>
        put === 'issuer' && !rows.some(({ row }) => row.value.id === value.id) ? [readOf(put, value.id, null)] : [],
      ),
    ],
    writes: [{ put: 'outside-issuer', value: issuer }, ...writes],
    entries: [said_],
  }),
  issuer,
})

/** For the journal: with the id, since one that is added again under the name is another one. */
const said = ({ id, name, url, access, secrets, roots }: OutsideIssuer) => ({
  ...{ issuer: id, name, url, kind: access.kind, roots },
  secrets: secrets?.names ?? [],
})
