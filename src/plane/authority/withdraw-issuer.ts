// Withdraws an authority whose key may be compromised. Its successor is made first, and both are one commit: at no moment
// is there no signer, and a crash leaves at most a key that no row names. Where only an offline root could make a successor
// nothing happens, and the refusal says how to get one.

import { alertKey } from '#domain/alerts/alert.ts'
import { withAlert } from '#domain/alerts/alert-decisions.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { readOf, type Change, type Row, boundedText, type Attribution } from '#domain/core/change.ts'
import { denialOfIssuer, withdrawalBarred, withdrawn, withdrawnWith, type IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { sortableId } from '#platform/random.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { retryLostRaces } from '#plane/core/commit-decision.ts'
import {
  bookTries,
  caKeyFor,
  signerAbove,
  lookAgain,
  readBook,
  type AuthorityParts,
  type AuthorityState,
} from './authority-state.ts'
import { keepKey, signerFrom, type CaSigner, type MadeCa } from './ca-signer.ts'
import { issuerEntry } from './issuer-book.ts'
import { memoryIssuerLifetimeMs } from './issuer-life.ts'
import { withRoom } from '#plane/keys/key-custody.ts'
import { makeIntermediate, makeIntermediateWith, type Making } from './make-issuer.ts'
import { keepResponder } from './responder.ts'
import { dropOrphans } from './take-into-service.ts'

export type WithdrawalWanted = {
  readonly issuer: IssuerId
  readonly reason: string
  readonly by: Attribution
  /** Publishes on the feed: channels of its nodes are cut in that turn. */
  readonly publish: (committed: Committed) => void
}

export type Withdrawal = {
  readonly kind: 'withdrawn'
  /** It and what was below it; none: it was withdrawn already. */
  readonly issuers: readonly IssuerId[]
  /** Their successors here; none: they no longer signed here. */
  readonly successors: readonly IssuerId[]
}

/**
 * Runs exclusively, but for replicas that make memory issuers: one that was made below it a moment before is found by the look
 * after the commit. After that commit none can be made below it.
 */
export const withdrawIssuer = (
  parts: AuthorityParts,
  state: AuthorityState,
  wanted: WithdrawalWanted,
): Promise<Withdrawal | Refusal> => {
  const issuers: IssuerId[] = []
  const successors: IssuerId[] = []
  return retryLostRaces(bookTries, async () => {
    await lookAgain(parts, state)
    await withRoom(parts.core.store, () => dropOrphans(parts.custody, state.book))
    const outside = await outsideRows(parts)
    const barred = withdrawalBarred(findOf(parts, state, outside, wanted.issuer))
    if (barred !== null) return { ...barred, detail: barred.detail ?? wanted.issuer }
    const hit = rowsOf(state, outside, wanted.issuer)
    if (hit.length === 0) return { kind: 'withdrawn', issuers, successors }
    const made = await successorsOf(parts, state, new Set(hit.map(({ value }) => value.id)))
    if (made === 'above-offline') return refuse('CA_ROOT_OFFLINE', 'nothing here can sign its successor')
    for (const signer of made) {
      await withRoom(parts.core.store, () => keepKey(parts.custody, signer))
      await withRoom(parts.core.store, () => keepResponder(parts, signer))
    }
    const outcome = await parts.core.store.commit(await changeOf(parts, state, hit, made, wanted))
    await readBook(parts, state)
    if (outcome === 'lost-race') return outcome
    state.signer = made.find(({ row }) => row.role === 'issuing') ?? state.signer
    wanted.publish(outcome)
    await parts.custody.refresh()
    // As after any succession: the store may have forgotten a key that nothing had named yet.
    for (const { row, ...signer } of made) {
      if (!parts.custody.has({ role: row.role, id: row.id })) {
        await withRoom(parts.core.store, () => keepKey(parts.custody, { row, ...signer }))
      }
    }
    await withRoom(parts.core.store, () => dropOrphans(parts.custody, state.book))
    issuers.push(...hit.map(({ value }) => value.id))
    successors.push(...made.map(({ row }) => row.id))
    parts.core.log.warn({ issuers, successors, reason: wanted.reason }, 'a certificate authority has been withdrawn')
    return 'decide-again'
  })
}

/** Above the leaves of outside issuers: nothing here signs with their keys, so they have no successor here. */
const outsideRows = async ({ core: { store } }: AuthorityParts): Promise<readonly Row<IssuerRow>[]> =>
  (await store.issuers()).filter(({ value: { role } }) => role === 'outside-root' || role === 'outside-issuing')

const findOf = (
  { recovery }: AuthorityParts,
  { book }: AuthorityState,
  outside: readonly Row<IssuerRow>[],
  id: IssuerId,
): IssuerRow | null =>
  book.find(id)?.value ??
  outside.find(({ value }) => value.id === id)?.value ??
  recovery.storedRoots().find(({ row }) => row.id === id)?.row ??
  null

const rowsOf = (
  { book }: AuthorityState,
  outside: readonly Row<IssuerRow>[],
  issuer: IssuerId,
): readonly Row<IssuerRow>[] => {
  const all = [...book.rows, ...outside]
  const rows = withdrawnWith(
    issuer,
    all.map(({ value }) => value),
  )
  return all.filter(({ value }) => rows.includes(value))
}

/** From the top down. Other replicas make new memory issuers once they receive the commit. */
const successorsOf = async (
  parts: AuthorityParts,
  state: AuthorityState,
  hit: ReadonlySet<IssuerId>,
): Promise<readonly MadeCa[] | 'above-offline'> => {
  const { clock, random } = parts.core
  const { custody, options } = parts
  const { book, signer, longestLeafMs } = state
  const inMemory = options.issuerKey === 'memory'
  const signs = inMemory ? (signer?.row ?? null) : (book.issuing ?? signer?.row ?? null)
  const domainCaHit = inMemory && book.domainCa !== null && hit.has(book.domainCa.id)
  if (!domainCaHit && (signs === null || !hit.has(signs.id))) return []
  const making: Making = {
    domain: options.domain,
    custody: 'file',
    lifetimeMs: options.intermediateLifetimeMs,
    nowMs: clock.nowMs(),
    random,
  }
  const made = async (role: 'domain-ca' | 'issuing', by: CaSigner): Promise<MadeCa> => {
    const key = await caKeyFor(parts, state, role)
    const successor = await makeIntermediateWith(key, role, by, { ...making, custody: key.custody })
    state.spareKey = null
    return successor
  }
  const root = domainCaHit ? signerFrom(custody, book.root) : null
  if (domainCaHit && root === null) return 'above-offline'
  const domainCa = root === null ? null : await made('domain-ca', root)
  const above = domainCa ?? signerAbove(parts, book, 'issuing')
  if (above === null) return 'above-offline'
  const inMemoryOnly: Making = { ...making, custody: 'memory', lifetimeMs: memoryIssuerLifetimeMs(longestLeafMs) }
  const issuing = inMemory ? await makeIntermediate('issuing', above, inMemoryOnly) : await made('issuing', above)
  return [...(domainCa === null ? [] : [domainCa]), issuing]
}

const changeOf = async (
  { core: { store, clock, random } }: AuthorityParts,
  { book }: AuthorityState,
  hit: readonly Row<IssuerRow>[],
  made: readonly MadeCa[],
  { issuer, by, ...wanted }: WithdrawalWanted,
): Promise<Change> => {
  const domain = await store.get('domain', 'domain')
  if (domain === null) throw new Error('the store has no domain')
  const nowMs = clock.nowMs()
  const reason = boundedText(wanted.reason)
  const replacedBy = made.at(-1)?.row.id ?? null
  const rows = made.map(({ row }) => row)
  const replaces = hit.map(({ value }) => value.id)
  const change: Change = {
    reads: [
      readOf('domain', 'domain', domain),
      ...rows.flatMap(({ id, parent }) => [
        readOf('issuer', id, null),
        ...(book.find(parent) === null ? [] : [readOf('issuer', parent, book.find(parent))]),
      ]),
      ...hit.map((row) => readOf('issuer', row.value.id, row)),
    ],
    writes: [
      ...rows.map((value) => ({ put: 'issuer', value }) as const),
      ...hit.map(({ value }) => ({ put: 'issuer', value: withdrawn(value, nowMs) }) as const),
      ...hit.map(
        ({ value }) =>
          ({
            put: 'denial',
            value: denialOfIssuer(
              value,
              domain.value.clockToleranceMs,
              `its authority was withdrawn: ${reason}`,
              nowMs,
            ),
          }) as const,
      ),
    ],
    entries: [
      ...rows.map((row) => issuerEntry('ca.rotated', row, by, nowMs, { why: 'compromised', replaces })),
      ...hit.map(({ value }) =>
        issuerEntry('ca.compromised', value, by, nowMs, { reason, because_of: issuer, replaced_by: replacedBy }),
      ),
    ] as unknown as Change['entries'],
  }
  // Resolved once no node lives by a certificate of it (alerts/alert-sources.ts).
  const evidence = { issuer, domain: domain.value.name, why: reason }
  const alert = wantedAlert('authority_compromised', issuer, evidence, { sinceMs: nowMs })
  const existing = await store.get('alert', alertKey(alert))
  const newId = sortableId(nowMs, random)
  return withAlert(change, { wanted: alert, existing, reliedOn: [], newId, by, nowMs })
}
