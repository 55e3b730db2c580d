// The authority as operators see it: `ca show`, and what the journal tells of its age.

import type { CaView } from '#wire/ca/ca-api.ts'
import { isoTime } from '#platform/clock.ts'
import { lostKeys, lostKeyText } from '#plane/keys/key-inventory.ts'
import type { AuthorityDeps, AuthorityState } from './authority-state.ts'
import { agingWarnings, type AgingWarning } from './authority-warnings.ts'
import { certificateOf } from './ca-signer.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { entry } from '#domain/core/change.ts'
import { byItself } from './issuer-book.ts'

export const agingNow = ({ clock, options, recovery }: AuthorityDeps, state: AuthorityState): readonly AgingWarning[] =>
  agingWarnings({
    book: state.book,
    recoveryRoots: recovery.rootsOnRecord().map(({ record }) => record),
    rootOnline: state.rootOnline,
    issuerKey: options.issuerKey,
    signs: signs(state, clock.nowMs()),
    intermediateLifetimeMs: options.intermediateLifetimeMs,
    longestLeafMs: state.longestLeafMs,
    nowMs: clock.nowMs(),
  })

export const lostNow = ({ clock, custody, options, recovery }: AuthorityDeps, state: AuthorityState) =>
  lostKeys({
    issuers: [...state.book.rows.map(({ value }) => value), ...recovery.rootsOnRecord().map(({ record }) => record)],
    names: custody.names(),
    // A plane without it has not started.
    headKey: 'here',
    issuerKey: options.issuerKey,
    nowMs: clock.nowMs(),
  }).map((lost): AgingWarning => ({ issuer: lost.id ?? lost.role, text: lostKeyText(lost) }))

const signs = ({ signer }: AuthorityState, nowMs: number): boolean =>
  signer !== null && signer.record.notAfterMs > nowMs

const weakSealing = {
  beside:
    'The sealing key is stored in the data folder, next to the keys it seals: those keys are effectively unencrypted. Move it elsewhere with mode 0600 and pass --seal-key FILE, or pass it as a systemd credential',
  group:
    'The sealing key can be read by its group: make sure that only the plane is in that group, or chmod 600. Copies of the data folder are protected',
} as const

export const authorityView = (deps: AuthorityDeps, state: AuthorityState): CaView => {
  const { clock, custody, options } = deps
  const { book, signer, server, rootOnline } = state
  if (server === null) throw new Error('the authority was looked at before it was open')
  const nowMs = clock.nowMs()
  const recovery = deps.recovery.rootsOnRecord()
  const isSigning = (id: string): boolean =>
    recovery.some(({ record, signing }) => signing && record.id === id) ||
    (signer !== null && signer.record.id === id && signs(state, nowMs)) ||
    (rootOnline && id === book.root.id) ||
    (book.domainCa !== null && book.domainCa.id === id && options.issuerKey === 'memory')

  return {
    domain: options.domain,
    root_fingerprint: certificateOf(book.root).sha256,
    root_online: rootOnline,
    sealing_protected: custody.protection === 'protected',
    // What has ended stays on record and is of no more interest; what serves is shown even then.
    authorities: [...book.rows.map(({ value }) => value), ...recovery.map(({ record }) => record)]
      .filter((record) => record.notAfterMs > nowMs || record.retiredAtMs === null)
      .map((record) => ({ record, certificate: certificateOf(record) }))
      .map(({ record, certificate }) => ({
        id: record.id,
        role: record.role,
        custody: record.custody,
        subject: certificate.subject,
        not_before: isoTime(record.notBeforeMs),
        not_after: isoTime(record.notAfterMs),
        signing: isSigning(record.id),
        sha256: certificate.sha256,
        ...(record.compromisedAtMs === null ? {} : { withdrawn_at: isoTime(record.compromisedAtMs) }),
      })),
    server_certificate: {
      serial: server.presented.serial,
      not_after: isoTime(server.presented.notAfterMs),
      names: [...server.presented.names.dns, ...server.presented.names.ip],
    },
    warnings: [
      ...(custody.protection === 'protected' ? [] : [weakSealing[custody.protection]]),
      ...deps.recovery.warnings(),
      ...lostNow(deps, state).map(({ text }) => text),
      ...agingNow(deps, state).map(({ text }) => text),
    ],
  }
}

const day = 24 * 3600 * 1000

/** Tells the journal of authorities that grow old and that only a person can replace: at most once a day and by one plane. */
export const tellAging = async (deps: AuthorityDeps, state: AuthorityState): Promise<void> => {
  const warnings = agingNow(deps, state)
  const [first] = warnings
  const fence = deps.store.replicas.leadership()
  if (first === undefined || fence === null) return
  const nowMs = deps.clock.nowMs()
  if (state.agingToldAtMs !== null && nowMs - state.agingToldAtMs < day) return
  // The leader before may have told it since.
  state.agingToldAtMs = await lastToldAtMs(deps)
  if (nowMs - state.agingToldAtMs < day) return

  const body = { warnings: warnings.map(({ text }) => text) }
  const told = entry(byItself, nowMs, 'ca.aging', { issuer: first.issuer }, body)
  const outcome = await commitOnce(deps, { reads: [], writes: [], entries: [told] }, fence)
  if (outcome === 'lost-race') return
  state.agingToldAtMs = nowMs
  deps.log.warn(body, 'a certificate authority needs a person')
}

const lastToldAtMs = async ({ store }: AuthorityDeps): Promise<number> => {
  const [last] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: 'ca.aging' })
  return last === undefined ? 0 : last.entry.atMs
}
