// Withdraws an issuing CA of programs whose key may be compromised. The list of its root names it from then on, and nothing is signed
// with its key any more.

import { boundedText, readOf, type Attribution, type Change, type Row } from '#domain/core/change.ts'
import { denialOfIssuer, withdrawalBarred, withdrawn, withdrawnWith, type IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { retryLostRaces } from '#plane/core/commit-decision.ts'
import { withRoom } from '#plane/keys/key-custody.ts'
import { bookTries } from './authority-state.ts'
import { keepKey } from './ca-signer.ts'
import { issuerEntry } from './issuer-book.ts'
import { dropEndedKeys, madeFor, type ProgramsParts, type ProgramsState } from './programs-issuers.ts'
import type { Withdrawal, WithdrawalWanted } from './withdraw-issuer.ts'

/** Its successor is in the same commit: at no moment is there no signer. May be repeated. */
export const withdrawProgramsIssuer = (
  parts: ProgramsParts,
  state: ProgramsState,
  look: () => Promise<void>,
  wanted: WithdrawalWanted,
): Promise<Withdrawal | Refusal> =>
  retryLostRaces(bookTries, async () => {
    await look()
    const rows = state.rows.map(({ value }) => value)
    const barred = withdrawalBarred(rows.find(({ id }) => id === wanted.issuer) ?? null)
    if (barred !== null) return { ...barred, detail: barred.detail ?? wanted.issuer }
    const names = new Set(withdrawnWith(wanted.issuer, rows).map(({ id }) => id))
    const hit = state.rows.filter(({ value }) => names.has(value.id))
    if (hit.length === 0) return { kind: 'withdrawn', issuers: [], successors: [] }
    const isSigning = state.signer !== null && names.has(state.signer.row.id)
    const made = isSigning ? await madeFor(parts, state, { role: 'programs-issuing', why: 'first one' }) : null
    if (isSigning && made === null) return refuse('CA_ROOT_OFFLINE', 'the key of the programs root is not here')
    if (made !== null) await withRoom(parts.core.store, () => keepKey(parts.custody, made))
    const outcome = await parts.core.store.commit(await withdrawal(parts, hit, made?.row ?? null, wanted))
    if (outcome === 'lost-race') {
      if (made !== null) await parts.custody.drop({ role: 'programs-issuing', id: made.row.id })
      return outcome
    }
    wanted.publish(outcome)
    // Before the keys go: where one cannot be removed, the successor signs all the same.
    await look()
    await dropEndedKeys(parts, state)
    const issuers = hit.map(({ value }) => value.id)
    const successors = made === null ? [] : [made.row.id]
    parts.core.log.warn({ issuers, successors, reason: wanted.reason }, 'an authority of programs has been withdrawn')
    return { kind: 'withdrawn', issuers, successors }
  })

/** What an authority apart from the runtime is withdrawn with. */
export const withdrawal = async (
  { core: { store, clock } }: Pick<ProgramsParts, 'core'>,
  hit: readonly Row<IssuerRow>[],
  made: IssuerRow | null,
  { issuer, reason, by }: { readonly issuer: IssuerId; readonly reason: string; readonly by: Attribution },
): Promise<Change> => {
  const domain = await store.get('domain', 'domain')
  if (domain === null) throw new Error('the store has no domain')
  const nowMs = clock.nowMs()
  const why = boundedText(reason)
  const replaces = hit.map(({ value }) => value.id)
  return {
    reads: [
      readOf('domain', 'domain', domain),
      ...(made === null ? [] : [readOf('issuer', made.id, null)]),
      ...hit.map((row) => readOf('issuer', row.value.id, row)),
    ],
    writes: [
      ...(made === null ? [] : [{ put: 'issuer', value: made } as const]),
      ...hit.flatMap(({ value }) => [
        { put: 'issuer', value: withdrawn(value, nowMs) } as const,
        {
          put: 'denial',
          value: denialOfIssuer(value, domain.value.clockToleranceMs, `its authority was withdrawn: ${why}`, nowMs),
        } as const,
      ]),
    ],
    entries: [
      ...(made === null ? [] : [issuerEntry('ca.rotated', made, by, nowMs, { why: 'compromised', replaces })]),
      ...hit.map(({ value }) =>
        issuerEntry('ca.compromised', value, by, nowMs, {
          reason: why,
          because_of: issuer,
          replaced_by: made?.id ?? null,
        }),
      ),
    ] as unknown as Change['entries'],
  }
}
