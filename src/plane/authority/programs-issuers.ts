// The authorities of programs: which serve, what is due, and how it is made. A root whose key is gone is never replaced
// automatically; an issuing CA is, because no verifier trusts it directly.

import { readOf, type Change, type Row } from '#domain/core/change.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { intermediateLifetimeMs, programsRootLifetimeMs } from '#pki/authority-certificates.ts'
import { buildCrl, type CrlSpec } from '#pki/crl.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'
import { keepKey, signerFrom, type CaSigner, type MadeCa } from './ca-signer.ts'
import { authorityActor, issuerEntry } from './issuer-book.ts'
import { halfLifeMs } from './issuer-life.ts'
import { makeProgramsIssuer, makeProgramsRoot } from './make-issuer.ts'

export type ProgramsParts = {
  readonly core: Omit<Core, 'timers'>
  readonly custody: KeyCustody
  readonly domain: string
}

/** An authority above leaves of programs, and how it signs its own revocation list. */
export type ProgramsListAuthority = {
  readonly row: IssuerRow
  /** DER; null: its key is not here, or it has ended. */
  readonly sign: ((list: Omit<CrlSpec, 'issuer' | 'authorityKeyId'>) => Uint8Array | Promise<Uint8Array>) | null
  /** Of its certificate, hex: how the list of the authority above it names it. */
  readonly serial: string
}

export type ProgramsState = {
  rows: readonly Row<IssuerRow>[]
  signer: CaSigner | null
  /** An output is listed, or was. */
  wanted: boolean
  /** Withdrawn by commits that have been published since the rows were read. */
  readonly justWithdrawn: Set<IssuerId>
}

export const isOfPrograms = ({ role }: Pick<IssuerRow | KeyName, 'role'>): boolean =>
  role === 'programs-root' || role === 'programs-issuing'

export const isAnyListed = async ({ core: { store } }: ProgramsParts): Promise<boolean> => {
  const profiles = await store.profiles()
  if (profiles.some(({ value }) => value.outputs.length > 0)) return true
  for await (const { outputs, deletedAtMs } of everyRow(store, 'vcluster', ({ name }) => name))
    if (deletedAtMs === null && outputs.length > 0) return true
  return false
}

/** Newest first. */
export const servingRoots = ({ rows }: ProgramsState, nowMs: number): readonly IssuerRow[] =>
  rows
    .map(({ value }) => value)
    .filter(
      ({ role, retiredAtMs, notAfterMs }) => role === 'programs-root' && retiredAtMs === null && notAfterMs > nowMs,
    )
    .sort((a, b) => b.notBeforeMs - a.notBeforeMs)

/** Newest first. */
const servingIssuers = ({ rows }: ProgramsState, nowMs: number): readonly IssuerRow[] =>
  rows
    .map(({ value }) => value)
    .filter(({ role, retiredAtMs }) => role === 'programs-issuing' && retiredAtMs === null)
    .filter(({ notAfterMs }) => notAfterMs > nowMs)
    .sort((a, b) => b.notBeforeMs - a.notBeforeMs)

const isHere = ({ custody }: ProgramsParts, { role, id }: IssuerRow): boolean => custody.has({ role, id })

export const signerOf = (parts: ProgramsParts, state: ProgramsState): CaSigner | null => {
  const row = servingIssuers(state, parts.core.clock.nowMs()).find((one) => isHere(parts, one))
  if (row === undefined) return null
  return state.signer?.row.id === row.id ? state.signer : signerFrom(parts.custody, row)
}

/** The oldest that an issuing CA still fits into: a verifier that was not given the newest trusts only that one. */
const rootToSignWith = (parts: ProgramsParts, state: ProgramsState): IssuerRow | null => {
  const nowMs = parts.core.clock.nowMs()
  const here = servingRoots(state, nowMs).filter((row) => isHere(parts, row))
  return here.findLast(({ notAfterMs }) => notAfterMs - nowMs >= intermediateLifetimeMs) ?? here[0] ?? null
}

type Due = { readonly role: 'programs-root' | 'programs-issuing'; readonly why: 'first one' | 'half life' | 'key gone' }

/** A root whose key is gone has no successor made for it: verifiers trust it, and its key may be put back. */
export const whatIsDue = (parts: ProgramsParts, state: ProgramsState): Due | null => {
  const nowMs = parts.core.clock.nowMs()
  const roots = servingRoots(state, nowMs)
  const newest = roots.find((row) => isHere(parts, row))
  if (newest === undefined) return roots.length === 0 ? { role: 'programs-root', why: 'first one' } : null
  if (nowMs >= halfLifeMs(newest)) return { role: 'programs-root', why: 'half life' }
  const { signer } = state
  if (signer === null) {
    return { role: 'programs-issuing', why: servingIssuers(state, nowMs).length === 0 ? 'first one' : 'key gone' }
  }
  const isOld = nowMs >= halfLifeMs(signer.row) && signer.row.notAfterMs < newest.notAfterMs
  return isOld ? { role: 'programs-issuing', why: 'half life' } : null
}

type LeaderToken = ReturnType<ProgramsParts['core']['store']['replicas']['leadership']>

/** Runs exclusively. A root first, and the issuing CA below it in the next step. */
export const makeWhatIsDue = async (parts: ProgramsParts, state: ProgramsState, token: LeaderToken): Promise<void> => {
  for (let due = whatIsDue(parts, state), made = 0; due !== null && made < 2; made++) {
    const signer = await madeFor(parts, state, due)
    if (signer === null) return
    // Durable before the commit that names it; a crash in between leaves a key that nothing names.
    await keepKey(parts.custody, signer)
    const outcome = await commitOnce(parts.core, succession(parts, state, signer.row, due), token)
    if (outcome === 'lost-race') {
      await parts.custody.drop({ role: signer.row.role, id: signer.row.id })
      throw new Error('the authorities of programs have changed meanwhile')
    }
    parts.core.log.info({ issuer: signer.row.id, ...due }, 'created an authority of programs')
    state.rows = (await parts.core.store.issuers()).filter(({ value }) => isOfPrograms(value))
    state.signer = signerOf(parts, state)
    due = whatIsDue(parts, state)
  }
}

export const madeFor = async (parts: ProgramsParts, state: ProgramsState, { role }: Due): Promise<MadeCa | null> => {
  const { clock, random } = parts.core
  const making = { domain: parts.domain, custody: 'file', nowMs: clock.nowMs(), random } as const
  if (role === 'programs-root') return makeProgramsRoot({ ...making, lifetimeMs: programsRootLifetimeMs })
  const row = rootToSignWith(parts, state)
  const root = row === null ? null : signerFrom(parts.custody, row)
  return root === null ? null : makeProgramsIssuer(root, { ...making, lifetimeMs: intermediateLifetimeMs })
}

/** An older root stays in service until it ends; an older issuing CA signs nothing but its lists from now on. */
const succession = (parts: ProgramsParts, { rows }: ProgramsState, made: IssuerRow, { role, why }: Due): Change => {
  const nowMs = parts.core.clock.nowMs()
  const replaced =
    role === 'programs-root' ? [] : rows.filter(({ value }) => value.role === role && value.retiredAtMs === null)
  const above = rows.find(({ value }) => value.id === made.parent) ?? null
  return {
    reads: [
      readOf('issuer', made.id, null),
      ...(above === null ? [] : [readOf('issuer', made.parent, above)]),
      ...replaced.map((row) => readOf('issuer', row.value.id, row)),
    ],
    writes: [
      { put: 'issuer', value: made },
      ...replaced.map(({ value }) => ({ put: 'issuer', value: { ...value, retiredAtMs: nowMs } }) as const),
    ],
    entries: [
      issuerEntry(replaced.length === 0 ? 'ca.created' : 'ca.rotated', made, authorityActor, nowMs, {
        why,
        replaces: replaced.map(({ value }) => value.id),
      }),
      ...replaced.map(({ value }) =>
        issuerEntry('ca.retired', value, authorityActor, nowMs, { why, replaced_by: made.id }),
      ),
    ],
  }
}

/**
 * A crash between the keeping of a key and the commit that names it leaves a key that is no authority's. Runs exclusively, at a start:
 * another replica may be between the two. A key that cannot be moved signs nothing where it lies, so that the start goes on.
 */
export const setUnnamedAside = async (parts: ProgramsParts, state: ProgramsState): Promise<void> => {
  const { core, custody } = parts
  for (const name of custody.names()) {
    if (!isOfPrograms(name) || rowOf(state, name) !== null) continue
    try {
      await custody.setAside(name)
    } catch (error) {
      core.log.warn({ err: error, key: name.id }, 'a key that is no authority of programs could not be set aside')
    }
  }
}

/** In every round: a commit whose outcome was not known at a start may name a key that was set aside then. */
export const takeNamedBack = async ({ core, custody }: ProgramsParts, state: ProgramsState): Promise<void> => {
  for (const name of custody.asideNames()) {
    if (!isOfPrograms(name) || rowOf(state, name)?.compromisedAtMs !== null) continue
    try {
      await custody.takeBack(name)
    } catch (error) {
      core.log.warn(
        { err: error, key: name.id },
        'the key of an authority of programs was set aside and could not be taken back',
      )
    }
  }
}

const rowOf = ({ rows }: ProgramsState, { role, id }: KeyName): IssuerRow | null =>
  rows.find(({ value }) => value.role === role && value.id === id)?.value ?? null

/**
 * Drops the keys that sign nothing any more, not even lists: of issuing CAs that were withdrawn or have ended. Every round looks
 * for them, because a crash may come between the commit of a withdrawal and the removal of the key.
 */
export const dropEndedKeys = async (
  { core: { clock }, custody }: ProgramsParts,
  { rows }: ProgramsState,
): Promise<void> => {
  for (const name of custody.names()) {
    if (name.role !== 'programs-issuing') continue
    const row = rows.find(({ value }) => value.id === name.id)?.value
    if (row !== undefined && (row.compromisedAtMs !== null || row.notAfterMs <= clock.nowMs())) await custody.drop(name)
  }
}

/** Of a withdrawn one every list would be signed by the key that is not to be trusted. */
export const listSignerOf = (parts: ProgramsParts, row: IssuerRow): ProgramsListAuthority['sign'] => {
  const signer = row.compromisedAtMs === null ? signerFrom(parts.custody, row) : null
  if (signer === null) return null
  const { certificate, key } = signer
  return (list) => buildCrl({ ...list, issuer: certificate.subjectName, authorityKeyId: row.id }, key)
}

export const warningsOf = (parts: ProgramsParts, state: ProgramsState): readonly string[] => {
  const roots = servingRoots(state, parts.core.clock.nowMs())
  if (roots.length === 0 || roots.some((row) => isHere(parts, row))) return []
  const file = `programs-root.${roots[0]?.id ?? '*'}.key`
  return [
    `The key of the programs root is gone: its revocation list ends, and programs that check lists then refuse everybody. Put keys/${file} back from a backup`,
  ]
}
