// The trust of programs (ruling 19): a root of its own, and an issuing CA below it that signs the leaves of programs. They are made
// when the first output is listed and every replica knows them, and replaced at half life. Nothing of the runtime or of recovery
// hangs under them, and no agent trusts them for a plane.

import { readOf, type Read, type Row } from '#domain/core/change.ts'
import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { takeTurns } from '#plane/core/turns.ts'
import { certificateOf, signLeaf } from './ca-signer.ts'
import {
  dropEndedKeys,
  isAnyListed,
  isOfPrograms,
  listSignerOf,
  makeWhatIsDue,
  servingRoots,
  setUnnamedAside,
  signerOf,
  takeNamedBack,
  warningsOf,
  whatIsDue,
  type ProgramsListAuthority,
  type ProgramsParts,
  type ProgramsState,
} from './programs-issuers.ts'
import type { Withdrawal, WithdrawalWanted } from './withdraw-issuer.ts'
import { withdrawProgramsIssuer } from './withdraw-programs-issuer.ts'

export type StoredAuthority = { readonly row: IssuerRow; readonly signing: boolean }

export type ProgramsAuthority = {
  /** Null: there is none yet; the leader makes it. */
  sign(order: SigningOrder): Promise<IssuedCertificate | null>
  /** What is between a leaf of this issuer and its root; DER. */
  chainOf(issuer: IssuerId): readonly Uint8Array[]
  /** PEM of the roots, newest first. */
  roots(): readonly string[]
  stored(): readonly StoredAuthority[]
  /** Also those that were withdrawn, were retired or have ended: a list of their root may name them. */
  listAuthorities(): readonly ProgramsListAuthority[]
  /** Sentences for operators. */
  warnings(): readonly string[]
  withdrawnIssuers(): readonly IssuerId[]
  rowRead(issuer: IssuerId): Read
  lookAgain(): Promise<void>
  has(issuer: IssuerId): boolean
  withdraw(wanted: WithdrawalWanted): Promise<Withdrawal | Refusal>
  /** Makes and replaces what is due, where this replica leads. Cheap when nothing is. */
  maintain(): Promise<void>
}

/** As much of it as the authority of the runtime shows to operators and withdraws for them. */
export type ProgramsTrust = Pick<ProgramsAuthority, 'stored' | 'warnings' | 'withdrawnIssuers' | 'has' | 'withdraw'>

export const openProgramsAuthority = async (
  core: ProgramsParts['core'],
  given: Omit<ProgramsParts, 'core'>,
): Promise<ProgramsAuthority> => {
  const parts: ProgramsParts = { ...given, core }
  const { store, clock, feed, log } = core
  const inTurn = takeTurns()
  const state: ProgramsState = { rows: [], signer: null, wanted: false, justWithdrawn: new Set() }

  const look = async (): Promise<void> => {
    state.rows = (await store.issuers()).filter(({ value }) => isOfPrograms(value))
    await parts.custody.refresh()
    state.signer = signerOf(parts, state)
  }
  const maintain = (): Promise<void> =>
    inTurn(async () => {
      if (store.sealedKeys !== null) await look()
      const token = store.replicas.leadership()
      // A replica of the release before would take these for authorities of the runtime.
      if (!state.wanted || token === null || store.unfinishedUpgrade() !== null) return
      // Before what is due: a key that lies aside is not gone.
      await takeNamedBack(parts, state)
      state.signer = signerOf(parts, state)
      if (whatIsDue(parts, state) !== null) {
        await store.exclusively(async () => {
          await look()
          await makeWhatIsDue(parts, state, token)
          await look()
        })
      }
      await dropEndedKeys(parts, state)
    })
  // Before the rows are read: an output that is listed meanwhile is not missed.
  feed.subscribe('programs authority', ({ origin, writes }) => {
    const isListed = writes.some(
      (write) => (write.put === 'profile' || write.put === 'vcluster') && write.value.outputs.length > 0,
    )
    const isChanged =
      origin === 'elsewhere' && writes.some((write) => write.put === 'issuer' && isOfPrograms(write.value))
    // Before the rows are read again: an agent that gets its trust in this turn has to get the new one.
    for (const write of writes) {
      if (write.put === 'issuer' && isOfPrograms(write.value) && write.value.compromisedAtMs !== null)
        state.justWithdrawn.add(write.value.id)
    }
    if (isListed) state.wanted = true
    if (!(isListed && state.signer === null) && !isChanged) return
    const seen = isChanged ? inTurn(look) : maintain()
    seen.catch((error: unknown) => log.warn({ err: error }, 'the authorities of programs could not be looked at'))
  })
  await store.exclusively(async () => {
    await look()
    await takeNamedBack(parts, state)
    await setUnnamedAside(parts, state)
    // One that was taken back may sign.
    state.signer = signerOf(parts, state)
  })
  state.wanted = state.rows.length > 0 || (await isAnyListed(parts))

  const find = (id: IssuerId): Row<IssuerRow> | null => state.rows.find(({ value }) => value.id === id) ?? null
  const rootsNow = (): readonly IssuerRow[] => servingRoots(state, clock.nowMs())

  return {
    async sign(order) {
      const fits = state.signer !== null && order.issuedAtMs < state.signer.row.notAfterMs
      if (!fits) await maintain()
      return state.signer === null ? null : signLeaf(state.signer, order, core.random)
    },
    chainOf(issuer) {
      const row = find(issuer)
      if (row === null) {
        void inTurn(look).catch((error: unknown) => log.warn({ err: error }, 'the authorities could not be read'))
        throw new Error(`issuer ${issuer} of a program is not known here yet`)
      }
      return [Buffer.from(row.value.der, 'base64')]
    },
    roots: () => rootsNow().map(({ der }) => toPem('CERTIFICATE', Buffer.from(der, 'base64'))),
    stored: () =>
      state.rows
        .map(({ value }) => value)
        .filter(({ notAfterMs }) => notAfterMs > clock.nowMs())
        .map((row) => ({ row, signing: row.id === state.signer?.row.id || row.id === state.signer?.row.parent })),
    listAuthorities: () =>
      state.rows.map(({ value: row }) => ({
        row,
        sign: row.notAfterMs > clock.nowMs() ? listSignerOf(parts, row) : null,
        serial: certificateOf(row).serial,
      })),
    warnings: () => warningsOf(parts, state),
    withdrawnIssuers: () =>
      state.rows
        .map(({ value }) => value)
        .filter(({ id, compromisedAtMs }) => compromisedAtMs !== null || state.justWithdrawn.has(id))
        .filter(({ notAfterMs }) => notAfterMs > clock.nowMs())
        .map(({ id }) => id),
    rowRead: (issuer) => readOf('issuer', issuer, find(issuer)),
    lookAgain: () => inTurn(look),
    has: (issuer) => find(issuer) !== null,
    withdraw: (wanted) => inTurn(() => store.exclusively(() => withdrawProgramsIssuer(parts, state, look, wanted))),
    maintain,
  }
}
