// The authority as operators see it: `ca show`, and journal entries about its age.

import type { CaView } from '#wire/ca/ca-api.ts'
import { isoTime } from '#platform/clock.ts'
import { lostKeys, lostKeyText } from '#plane/keys/key-inventory.ts'
import type { AuthorityParts, AuthorityState } from './authority-state.ts'
import { certificateOf } from './ca-signer.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { entry } from '#domain/core/change.ts'
import { authorityActor, type IssuerBook } from './issuer-book.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { halfLifeMs } from './issuer-life.ts'

export const agingNow = (
  { core: { clock }, options, recovery }: AuthorityParts,
  state: AuthorityState,
): readonly AgingWarning[] =>
  agingWarnings({
    book: state.book,
    recoveryRoots: recovery.storedRoots().map(({ row }) => row),
    rootOnline: state.rootOnline,
    issuerKey: options.issuerKey,
    signs: signs(state, clock.nowMs()),
    intermediateLifetimeMs: options.intermediateLifetimeMs,
    longestLeafMs: state.longestLeafMs,
    nowMs: clock.nowMs(),
  })

export const lostNow = ({ core: { clock }, custody, options, recovery }: AuthorityParts, state: AuthorityState) =>
  lostKeys({
    issuers: [...state.book.rows.map(({ value }) => value), ...recovery.storedRoots().map(({ row }) => row)],
    names: custody.names(),
    // A plane without it has not started.
    headKey: 'here',
    issuerKey: options.issuerKey,
    nowMs: clock.nowMs(),
  }).map((lost): AgingWarning => ({ issuer: lost.id ?? lost.role, text: lostKeyText(lost) }))

const signs = ({ signer }: AuthorityState, nowMs: number): boolean => signer !== null && signer.row.notAfterMs > nowMs

const weakSealing = {
  beside:
    'The sealing key is stored in the data folder, next to the keys it seals: those keys are effectively unencrypted. Move it elsewhere with mode 0600 and pass --seal-key FILE, or pass it as a systemd credential',
  group:
    'The sealing key can be read by its group: make sure that only the plane is in that group, or chmod 600. Copies of the data folder are protected',
} as const

export const authorityView = (parts: AuthorityParts, state: AuthorityState): CaView => {
  const { clock } = parts.core
  const { custody, options } = parts
  const { book, signer, server, rootOnline } = state
  if (server === null) throw new Error('the authority was looked at before it was open')
  const nowMs = clock.nowMs()
  const recovery = parts.recovery.storedRoots()
  const programs = parts.programs.stored()
  const workers = parts.workers.stored()
  const isSigning = (id: string): boolean =>
    [...recovery, ...programs, ...workers].some(({ row, signing }) => signing && row.id === id) ||
    (signer !== null && signer.row.id === id && signs(state, nowMs)) ||
    (rootOnline && id === book.root.id) ||
    (book.domainCa !== null && book.domainCa.id === id && options.issuerKey === 'memory')

  return {
    domain: options.domain,
    root: `sha256:${certificateOf(book.root).sha256}`,
    root_fingerprint: certificateOf(book.root).sha256,
    root_online: rootOnline,
    sealing_protected: custody.protection === 'protected',
    // An authority that has ended stays in the store and is not shown, unless it still serves.
    authorities: [
      ...book.rows.map(({ value }) => value),
      ...recovery.map(({ row }) => row),
      ...programs.map(({ row }) => row),
      ...workers.map(({ row }) => row),
    ]
      .filter((row) => row.notAfterMs > nowMs || row.retiredAtMs === null)
      .map((row) => ({ row, certificate: certificateOf(row) }))
      .map(({ row, certificate }) => ({
        id: row.id,
        role: row.role,
        custody: row.custody,
        subject: certificate.subject,
        not_before: isoTime(row.notBeforeMs),
        not_after: isoTime(row.notAfterMs),
        signing: isSigning(row.id),
        fingerprint: `sha256:${certificate.sha256}`,
        sha256: certificate.sha256,
        ...(row.compromisedAtMs === null ? {} : { withdrawn_at: isoTime(row.compromisedAtMs) }),
      })),
    server_certificate: {
      serial: server.presented.serial,
      not_after: isoTime(server.presented.notAfterMs),
      names: [...server.presented.names.dns, ...server.presented.names.ip],
    },
    warnings: [
      ...(custody.protection === 'protected' ? [] : [weakSealing[custody.protection]]),
      ...parts.recovery.warnings(),
      ...parts.programs.warnings(),
      ...parts.workers.warnings(),
      ...custody.elsewhere.troubles().map(({ text }) => text),
      ...lostNow(parts, state).map(({ text }) => text),
      ...agingNow(parts, state).map(({ text }) => text),
    ],
  }
}

const day = 24 * 3600 * 1000

/** Journals aging authorities that only a person can replace: at most once a day and by one plane. */
export const journalAging = async (parts: AuthorityParts, state: AuthorityState): Promise<void> => {
  const warnings = agingNow(parts, state)
  const [first] = warnings
  const fencingToken = parts.core.store.replicas.leadership()
  if (first === undefined || fencingToken === null) return
  const nowMs = parts.core.clock.nowMs()
  if (state.agingJournaledAtMs !== null && nowMs - state.agingJournaledAtMs < day) return
  // The previous leader may have journaled it since.
  state.agingJournaledAtMs = await lastJournaledAtMs(parts)
  if (nowMs - state.agingJournaledAtMs < day) return

  const body = { warnings: warnings.map(({ text }) => text) }
  const journaled = entry(authorityActor, nowMs, 'ca.aging', { issuer: first.issuer }, body)
  const outcome = await commitOnce(parts.core, { reads: [], writes: [], entries: [journaled] }, fencingToken)
  if (outcome === 'lost-race') return
  state.agingJournaledAtMs = nowMs
  parts.core.log.warn(body, 'a certificate authority needs an operator')
}

const lastJournaledAtMs = async ({ core: { store } }: AuthorityParts): Promise<number> => {
  const [last] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: 'ca.aging' })
  return last === undefined ? 0 : last.entry.atMs
}

// What an operator has to know about the authorities: what only a person can do, in time for it to be done.

export type WarningFacts = {
  readonly book: IssuerBook
  /** Newest first. */
  readonly recoveryRoots: readonly IssuerRow[]
  readonly rootOnline: boolean
  readonly issuerKey: 'file' | 'memory'
  /** Whether anything signs leaves now. */
  readonly signs: boolean
  readonly intermediateLifetimeMs: number
  readonly longestLeafMs: number
  readonly nowMs: number
}

/** The authority it is about, and a sentence. */
export type AgingWarning = { readonly issuer: string; readonly text: string }

const theWayOut = 'muster ca request, then muster ca sign where the root is, then muster ca import'

/** Warned of from half life on, where only the offline root could help (ruling 1). */
const agingWarnings = (facts: WarningFacts): readonly AgingWarning[] => {
  const { book, rootOnline, nowMs } = facts
  const below = facts.issuerKey === 'memory' ? book.domainCa : book.issuing
  return [
    ...(rootOnline ? [] : offlineWarnings(facts, below)),
    ...signingWarnings(facts),
    ...rootWarnings(facts, nowMs),
    ...recoveryWarnings(facts),
  ]
}

const offlineWarnings = ({ book, longestLeafMs, nowMs }: WarningFacts, below: IssuerRow | null): AgingWarning[] => {
  if (below === null) return [{ issuer: book.root.id, text: `There is no CA below the offline root: ${theWayOut}` }]
  const { id, role, notAfterMs } = below
  const ends = isoTime(notAfterMs)
  const say = (text: string): AgingWarning[] => [{ issuer: id, text: `The ${role} CA ${id} ${text}: ${theWayOut}` }]
  if (notAfterMs <= nowMs) return say(`ended ${ends}, and the root is offline`)
  if (notAfterMs - nowMs < longestLeafMs)
    return say(`ends ${ends} and already cuts certificates short; the root is offline`)
  return nowMs >= halfLifeMs(below) ? say(`ends ${ends} and is past half its life; the root is offline`) : []
}

const signingWarnings = ({ book, signs }: WarningFacts): AgingWarning[] =>
  signs ? [] : [{ issuer: book.root.id, text: 'No issuing CA can sign now: nothing can be enrolled or renewed' }]

const rootWarnings = ({ book, intermediateLifetimeMs }: WarningFacts, nowMs: number): AgingWarning[] => {
  const { id, notBeforeMs, notAfterMs } = book.root
  if (nowMs < notBeforeMs)
    return [{ issuer: id, text: `The clock is behind the start of the root, ${isoTime(notBeforeMs)}` }]
  if (notAfterMs - nowMs >= intermediateLifetimeMs) return []
  return [
    { issuer: id, text: `The root ends ${isoTime(notAfterMs)}: every CA made below it from now on ends then too` },
  ]
}

/** The successor of a recovery root is made automatically; machines that were off since then do not know it. */
const recoveryWarnings = ({ recoveryRoots, nowMs }: WarningFacts): AgingWarning[] =>
  recoveryRoots
    .filter(({ notAfterMs }) => notAfterMs - nowMs < year)
    .map(({ id, notAfterMs }) => ({
      issuer: id,
      text: `The recovery root ${id} ends ${isoTime(notAfterMs)}: a machine that knows no newer one then needs muster node repair-bundle`,
    }))

const year = 365 * 24 * 3600 * 1000
