// The authority of workers: an issuing CA of its own below the root of the domain, for client certificates only. It is made when the
// first worker issuer is there, and replaced at half life. No authority of nodes signs for workers, and this one signs for no node.

import { readOf, type Attribution, type Change, type Row } from '#domain/core/change.ts'
import { withdrawalBarred, withdrawnWith, type IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { intermediateLifetimeMs } from '#pki/authority-certificates.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import { takeTurns } from '#plane/core/turns.ts'
import { withRoom, type KeyCustody } from '#plane/keys/key-custody.ts'
import { bookTries } from './authority-state.ts'
import { keepKey, signerFrom, signLeaf, type CaSigner, type MadeCa } from './ca-signer.ts'
import { authorityActor, issuerEntry } from './issuer-book.ts'
import { halfLifeMs } from './issuer-life.ts'
import { makeWorkersIssuer } from './make-issuer.ts'
import type { ProgramsAuthority, ProgramsTrust } from './programs-authority.ts'
import type { Withdrawal, WithdrawalWanted } from './withdraw-issuer.ts'
import { withdrawal } from './withdraw-programs-issuer.ts'

/** As much of it as the authority of the runtime shows to operators, withdraws and imports for them. */
export type WorkersTrust = ProgramsTrust & {
  /** Takes into service what an offline root has signed; its key is kept. */
  take(made: CaSigner, by: Attribution): Promise<'taken' | 'lost-race'>
}

export type WorkersAuthority = WorkersTrust &
  Pick<ProgramsAuthority, 'rowRead' | 'lookAgain' | 'maintain'> & {
    /** Null: there is none yet, or the root is offline. */
    sign(order: SigningOrder): Promise<IssuedCertificate | null>
    /** What is between a certificate of this issuer and the root; DER. */
    chainOf(issuer: IssuerId): readonly Uint8Array[]
  }

type Parts = { readonly core: Omit<Core, 'timers'>; readonly custody: KeyCustody; readonly domain: string }

type State = {
  /** Those of workers, and those that stand above one. */
  all: readonly Row<IssuerRow>[]
  signer: CaSigner | null
  /** There is a worker issuer, or was. */
  wanted: boolean
}

const role = 'workers-issuing'

export const openWorkersAuthority = async (
  core: Parts['core'],
  given: Omit<Parts, 'core'>,
): Promise<WorkersAuthority> => {
  const parts: Parts = { ...given, core }
  const { store, clock, feed, log } = core
  const inTurn = takeTurns()
  const state: State = { all: [], signer: null, wanted: false }
  const look = async (): Promise<void> => {
    state.all = await store.issuers()
    await parts.custody.refresh()
    state.signer = signerOf(parts, state)
  }
  const maintain = (): Promise<void> =>
    inTurn(async () => {
      if (store.sealedKeys !== null) await look()
      const token = store.replicas.leadership()
      // A replica of the release before knows no authority of this kind.
      if (!state.wanted || token === null || store.unfinishedUpgrade() !== null) return
      if (isDue(parts, state)) {
        await store.exclusively(async () => {
          await look()
          if (isDue(parts, state)) await makeOne(parts, state, token)
          await look()
        })
      }
      await dropEndedKeys(parts, state)
    })
  // Before the rows are read: an issuer that is added meanwhile is not missed.
  feed.subscribe('workers authority', ({ origin, writes }) => {
    const isAdded = writes.some((write) => write.put === 'worker-issuer' && write.value.removedAtMs === null)
    const isChanged = origin === 'elsewhere' && writes.some(({ put }) => put === 'issuer')
    if (isAdded) state.wanted = true
    if (!(isAdded && state.signer === null) && !isChanged) return
    const seen = isChanged ? inTurn(look) : maintain()
    seen.catch((error: unknown) => log.warn({ err: error }, 'the authority of workers could not be looked at'))
  })
  await look()
  state.wanted = rowsOf(state).length > 0 || (await isAnyIssuer(store))

  const find = (id: IssuerId): Row<IssuerRow> | null => rowsOf(state).find(({ value }) => value.id === id) ?? null

  return {
    async sign(order) {
      if (order.for.kind !== 'worker') throw new Error(`the authority of workers signs nothing for a ${order.for.kind}`)
      const fits = state.signer !== null && order.issuedAtMs < state.signer.row.notAfterMs
      if (!fits) await maintain()
      return state.signer === null ? null : signLeaf(state.signer, order, core.random)
    },
    chainOf(issuer) {
      const chain: Uint8Array[] = []
      // An issuing CA of workers, and a domain CA above it at most.
      for (let id = issuer; chain.length < 3;) {
        const row = state.all.find(({ value }) => value.id === id)?.value
        if (row === undefined) throw new Error(`issuer ${issuer} of a worker is not known here yet`)
        if (row.role === 'root') return chain
        chain.push(Buffer.from(row.der, 'base64'))
        id = row.parent
      }
      throw new Error(`no root above issuer ${issuer} of a worker is in the store`)
    },
    stored: () =>
      rowsOf(state)
        .map(({ value }) => value)
        .filter(({ notAfterMs }) => notAfterMs > clock.nowMs())
        .map((row) => ({ row, signing: row.id === state.signer?.row.id })),
    warnings() {
      const isOld = state.signer === null || clock.nowMs() >= halfLifeMs(state.signer.row)
      if (!state.wanted || !isOld || aboveOf(parts, state) !== null) return []
      const what = state.signer === null ? 'There is no authority of workers' : 'The authority of workers grows old'
      return [`${what}, and the root that signs one is offline: muster ca request --workers > workers.csr`]
    },
    withdrawnIssuers: () =>
      rowsOf(state)
        .map(({ value }) => value)
        .filter((row) => isWithdrawn(state, row) && row.notAfterMs > clock.nowMs())
        .map(({ id }) => id),
    rowRead: (issuer) => readOf('issuer', issuer, find(issuer)),
    lookAgain: () => inTurn(look),
    has: (issuer) => find(issuer) !== null,
    // Not in turn: the caller has the store for itself, which a turn may be waiting for.
    async take(signer, by) {
      await look()
      const outcome = await commitOnce(core, succession(parts, state, signer.row, { by, why: 'imported' }))
      if (outcome === 'lost-race') return outcome
      state.wanted = true
      await look()
      await dropEndedKeys(parts, state)
      return 'taken'
    },
    withdraw: (wanted) => inTurn(() => store.exclusively(() => withdraw(parts, state, look, wanted))),
    maintain,
  }
}

const isAnyIssuer = async (store: Core['store']): Promise<boolean> => {
  for await (const { removedAtMs } of everyRow(store, 'worker-issuer', ({ name }) => name))
    if (removedAtMs === null) return true
  return false
}

const rowsOf = ({ all }: State): readonly Row<IssuerRow>[] => all.filter(({ value }) => value.role === role)

/** Also with the authority above it, which is withdrawn by the authority of the runtime. */
const isWithdrawn = ({ all }: State, row: IssuerRow): boolean =>
  row.compromisedAtMs !== null ||
  all.some(({ value }) => value.id === row.parent && value.id !== row.id && value.compromisedAtMs !== null)

const signerOf = (parts: Parts, state: State): CaSigner | null => {
  const nowMs = parts.core.clock.nowMs()
  const row = rowsOf(state)
    .map(({ value }) => value)
    .filter((one) => one.retiredAtMs === null && one.notAfterMs > nowMs && !isWithdrawn(state, one))
    .sort((a, b) => b.notBeforeMs - a.notBeforeMs)
    .find(({ id }) => parts.custody.has({ role, id }))
  if (row === undefined) return null
  return state.signer?.row.id === row.id ? state.signer : signerFrom(parts.custody, row)
}

/** The root; where its key is offline, an online CA below it that leaves room for one more. */
const aboveOf = ({ core: { clock }, custody }: Parts, { all }: State): CaSigner | null => {
  for (const above of ['root', 'domain-ca'] as const) {
    const here = all
      .map(({ value }) => value)
      .filter((row) => row.role === above && row.retiredAtMs === null && row.notAfterMs > clock.nowMs())
      .sort((a, b) => b.notBeforeMs - a.notBeforeMs)
      .find(({ id }) => custody.has({ role: above, id }))
    if (here !== undefined) return signerFrom(custody, here)
  }
  return null
}

/** What ends with the CA above it has no successor before that has one. */
const isDue = (parts: Parts, state: State): boolean => {
  const above = aboveOf(parts, state)
  if (above === null) return false
  if (state.signer === null) return true
  const { row } = state.signer
  return parts.core.clock.nowMs() >= halfLifeMs(row) && row.notAfterMs < above.row.notAfterMs
}

const made = async (parts: Parts, state: State): Promise<MadeCa | null> => {
  const above = aboveOf(parts, state)
  if (above === null) return null
  const { clock, random } = parts.core
  const making = { domain: parts.domain, custody: 'file', nowMs: clock.nowMs(), random } as const
  return makeWorkersIssuer(above, { ...making, lifetimeMs: intermediateLifetimeMs })
}

/** Runs exclusively. The key is durable before the commit that names it. */
const makeOne = async (
  parts: Parts,
  state: State,
  token: ReturnType<Core['store']['replicas']['leadership']>,
): Promise<void> => {
  const signer = await made(parts, state)
  if (signer === null) return
  await keepKey(parts.custody, signer)
  const outcome = await commitOnce(
    parts.core,
    succession(parts, state, signer.row, { by: authorityActor, why: 'due' }),
    token,
  )
  if (outcome === 'lost-race') {
    await parts.custody.drop({ role, id: signer.row.id })
    throw new Error('the authorities have changed meanwhile')
  }
  parts.core.log.info({ issuer: signer.row.id }, 'created an authority of workers')
}

type Story = { readonly by: Attribution; readonly why: 'due' | 'imported' }

const succession = ({ core: { clock } }: Parts, state: State, row: IssuerRow, story: Story): Change => {
  const nowMs = clock.nowMs()
  const replaced = rowsOf(state).filter(({ value }) => value.retiredAtMs === null)
  const above = state.all.find(({ value }) => value.id === row.parent) ?? null
  const { by } = story
  const why = story.why === 'imported' ? 'imported' : replaced.length === 0 ? 'first one' : 'half life'
  return {
    reads: [
      readOf('issuer', row.id, null),
      readOf('issuer', row.parent, above),
      ...replaced.map((one) => readOf('issuer', one.value.id, one)),
    ],
    writes: [
      { put: 'issuer', value: row },
      ...replaced.map(({ value }) => ({ put: 'issuer', value: { ...value, retiredAtMs: nowMs } }) as const),
    ],
    entries: [
      issuerEntry(replaced.length === 0 ? 'ca.created' : 'ca.rotated', row, by, nowMs, {
        why,
        replaces: replaced.map(({ value }) => value.id),
      }),
      ...replaced.map(({ value }) => issuerEntry('ca.retired', value, by, nowMs, { why, replaced_by: row.id })),
    ],
  }
}

/** Keys that sign nothing any more. One that no row names is left: a commit whose outcome was not known may name it. */
const dropEndedKeys = async ({ core: { clock }, custody }: Parts, state: State): Promise<void> => {
  for (const name of custody.names()) {
    const row = name.role === role ? rowsOf(state).find(({ value }) => value.id === name.id)?.value : undefined
    if (row !== undefined && (row.retiredAtMs !== null || row.notAfterMs <= clock.nowMs())) await custody.drop(name)
  }
}

/** Its successor is in the same commit. May be repeated. */
const withdraw = (
  parts: Parts,
  state: State,
  look: () => Promise<void>,
  wanted: WithdrawalWanted,
): Promise<Withdrawal | Refusal> =>
  retryLostRaces(bookTries, async () => {
    await look()
    const rows = rowsOf(state)
    const barred = withdrawalBarred(rows.find(({ value }) => value.id === wanted.issuer)?.value ?? null)
    if (barred !== null) return { ...barred, detail: barred.detail ?? wanted.issuer }
    const values = rows.map(({ value }) => value)
    const names = new Set(withdrawnWith(wanted.issuer, values).map(({ id }) => id))
    const hit = rows.filter(({ value }) => names.has(value.id))
    if (hit.length === 0) return { kind: 'withdrawn', issuers: [], successors: [] }
    const isSigning = state.signer !== null && names.has(state.signer.row.id)
    const successor = isSigning ? await made(parts, state) : null
    if (isSigning && successor === null) return refuse('CA_ROOT_OFFLINE', 'nothing here can sign its successor')
    if (successor !== null) await withRoom(parts.core.store, () => keepKey(parts.custody, successor))
    const outcome = await parts.core.store.commit(await withdrawal(parts, hit, successor?.row ?? null, wanted))
    if (outcome === 'lost-race') {
      if (successor !== null) await parts.custody.drop({ role, id: successor.row.id })
      return outcome
    }
    wanted.publish(outcome)
    await look()
    await dropEndedKeys(parts, state)
    const issuers = hit.map(({ value }) => value.id)
    const successors = successor === null ? [] : [successor.row.id]
    parts.core.log.warn({ issuers, successors, reason: wanted.reason }, 'an authority of workers has been withdrawn')
    return { kind: 'withdrawn', issuers, successors }
  })
