// The keys that sign tasks, all in one row: which of them signs, which is sent to hosts before it signs, which are still accepted, and
// which never again. Every change raises the number, by which hosts refuse an older set (docs/decisions/tasks.md).

import {
  decided,
  entry,
  readOf,
  boundedText,
  type Attribution,
  type Change,
  type Decided,
  type MayBeForged,
  type Row,
} from '#domain/core/change.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type SignerState =
  /** In statements, so that hosts have it before it signs. */
  | { readonly kind: 'next'; readonly sinceMs: number; readonly signsAtMs: number }
  | { readonly kind: 'signing'; readonly sinceMs: number }
  /** Signs nothing more; what it has signed is accepted for as long as it lives. */
  | { readonly kind: 'grace'; readonly sinceMs: number; readonly untilMs: number }
  /** Nothing it has signed is accepted. `sinceNumber`: of the statement that says so first. */
  | {
      readonly kind: 'withdrawn'
      readonly sinceMs: number
      readonly untilMs: number
      readonly sinceNumber: number
      readonly reason: string
    }
  /** In no statement any more. Its private key is dropped. */
  | { readonly kind: 'retired'; readonly sinceMs: number }

export type MadeKey = {
  /** The key id of the public key. */
  readonly key: string
  /** SubjectPublicKeyInfo, DER, base64. */
  readonly spki: string
}

export type Signer = MadeKey & {
  /** Counts the signers of the domain, from 1. */
  readonly version: number
  /** Of the first statement that names it. */
  readonly firstNumber: number
  readonly state: SignerState
}

export type TaskSigners = MayBeForged & {
  /** A time where that is higher than one more than before: a store that was restored goes on above what hosts have seen. */
  readonly number: number
  /** Newest first. */
  readonly signers: readonly Signer[]
}

/** Neither a task nor a statement of verifiers lives longer. */
export const signerStepMs = 24 * 3_600_000
/** In statements, withdrawn and retired: of each so many at most. */
const mostOfEach = 8

export type SignersDecided = Decided & { readonly signers: TaskSigners }

/** `made`: a key that is durable and that no row names yet; used where one is needed. */
export type SignerFacts = {
  readonly row: Row<TaskSigners>
  readonly made: MadeKey
  /** The difference between clocks that the domain allows. */
  readonly toleranceMs: number
  readonly by: Attribution
  readonly nowMs: number
}

export const signersKey = 'domain'

/** Those in statements: a host accepts what they sign. */
export const isVerifier = ({ state }: Signer): boolean =>
  state.kind === 'next' || state.kind === 'signing' || state.kind === 'grace'

export const signingOf = ({ signers }: TaskSigners): Signer | null =>
  signers.find(({ state }) => state.kind === 'signing') ?? null

/** The first of a domain signs at once: no host has refused anything yet. */
export const decideFirstSigner = ({ made, by, nowMs }: Omit<SignerFacts, 'row' | 'toleranceMs'>): SignersDecided => {
  const state = { kind: 'signing', sinceMs: nowMs } as const
  const first: Signer = { ...made, version: 1, firstNumber: nowMs, state }
  const signers: TaskSigners = { number: nowMs, signers: [first] }
  return written(null, signers, [said(by, nowMs, 'signer.created', first, { why: 'first one' })])
}

/**
 * For a row that no plane wrote: nothing of it is kept, so hosts accept what the new one signs as soon as they have its statement. A number
 * above the present time was never handed out.
 */
export const decideSignersAnew = ({ row, made, by, nowMs }: SignerFacts): SignersDecided => {
  const number = row.value.number < nowMs ? nowMs : Math.min(row.value.number + 1, nowMs + signerStepMs)
  const first: Signer = { ...made, version: 1, firstNumber: number, state: { kind: 'signing', sinceMs: nowMs } }
  return written(row, { number, signers: [first] }, [said(by, nowMs, 'signer.created', first, { why: 'made anew' })])
}

/** The next one is made and travels in statements; it signs when every statement without it has expired. */
export const decideRotate = (facts: SignerFacts): SignersDecided | Refusal => {
  const { row, nowMs, by } = facts
  const waiting = nextOf(row.value)
  if (waiting !== null) return refuse('SIGNER_ROTATING', `${waiting.key} is next`)
  if (row.value.signers.filter(isVerifier).length >= mostOfEach) return refuse('SIGNERS_FULL')
  const step = begin(facts)
  const signsAtMs = nowMs + signerStepMs + facts.toleranceMs
  const next = madeSigner(step, facts, { kind: 'next', sinceMs: nowMs, signsAtMs })
  const why = { why: 'rotation', replaces: signingOf(row.value)?.key ?? null }
  return finish(facts, step, [next, ...row.value.signers], [said(by, nowMs, 'signer.created', next, why)])
}

/** The next one signs without waiting. Hosts without it refuse tasks until they have fetched a statement. */
export const decideRotateNow = (facts: SignerFacts): SignersDecided | Refusal => {
  const { row } = facts
  const waiting = nextOf(row.value)
  if (waiting === null && row.value.signers.filter(isVerifier).length >= mostOfEach) return refuse('SIGNERS_FULL')
  const step = begin(facts)
  const made = waiting === null ? madeSigner(step, facts, { kind: 'signing', sinceMs: facts.nowMs }) : null
  const all = made === null ? row.value.signers : [made, ...row.value.signers]
  const { signers, entries } = handOver(facts, all, made ?? waiting, 'at once')
  return finish(facts, step, signers, entries)
}

/** Undoes the last rotation: a next one is dropped before it signs; else the newest in grace signs again. */
export const decideRotateBack = (facts: SignerFacts): SignersDecided | Refusal => {
  const { row, by, nowMs } = facts
  const step = begin(facts)
  const waiting = nextOf(row.value)
  if (waiting !== null) {
    const entries = [said(by, nowMs, 'signer.retired', waiting, { why: 'rolled back' })]
    return finish(facts, step, replaced(row.value.signers, retired(waiting, nowMs)), entries)
  }
  const before = row.value.signers.filter(({ state }) => state.kind === 'grace').sort(latestFirst)[0]
  if (before === undefined) return refuse('SIGNER_NOT_IN_GRACE')
  const { signers, entries } = handOver(facts, row.value.signers, before, 'rolled back')
  return finish(facts, step, signers, entries)
}

export type Withdrawal = { readonly key: string; readonly reason: string }

/** Never refused for want of room: what a stolen key can do has to end now. */
export const decideWithdraw = (
  facts: SignerFacts,
  { key, reason }: Withdrawal,
): SignersDecided | { readonly kind: 'unchanged' } | Refusal => {
  const { row, by, nowMs, toleranceMs } = facts
  const signer = row.value.signers.find((one) => one.key === key)
  if (signer === undefined) return refuse('SIGNER_NOT_FOUND', key)
  if (signer.state.kind === 'withdrawn' || signer.state.kind === 'retired') return { kind: 'unchanged' }
  const step = begin(facts)
  const state: SignerState = {
    ...{ kind: 'withdrawn', sinceMs: nowMs, untilMs: nowMs + signerStepMs + toleranceMs },
    ...{ sinceNumber: step.number, reason: boundedText(reason) },
  }
  const withdrawn = { ...signer, state }
  const entries = [said(by, nowMs, 'signer.withdrawn', withdrawn, { was: signer.state.kind, reason: state.reason })]
  const others = replaced(row.value.signers, withdrawn)
  if (signer.state.kind !== 'signing') return finish(facts, step, others, entries)
  const waiting = nextOf(row.value)
  const made = waiting === null ? madeSigner(step, facts, { kind: 'signing', sinceMs: nowMs }) : null
  const all = made === null ? others : [made, ...others]
  const handed = handOver(facts, all, made ?? waiting, 'the one before was withdrawn')
  return finish(facts, step, handed.signers, [...entries, ...handed.entries])
}

/** What time alone brings: the next one signs, and what nothing depends on any more retires. Null: nothing is due. */
export const decideSignersDue = (facts: Omit<SignerFacts, 'made'>): SignersDecided | null => {
  const { row, by, nowMs } = facts
  const waiting = nextOf(row.value)
  const isDue = waiting?.state.kind === 'next' && waiting.state.signsAtMs <= nowMs
  const over = row.value.signers.filter(
    ({ state }) => (state.kind === 'grace' || state.kind === 'withdrawn') && state.untilMs <= nowMs,
  )
  if (!isDue && over.length === 0) return null
  const ended = over.map((one) => retired(one, nowMs))
  const rest = ended.reduce(replaced, row.value.signers)
  const entries = over.map((one) => said(by, nowMs, 'signer.retired', one, { why: `its ${one.state.kind} is over` }))
  const handed = isDue ? handOver(facts, rest, waiting, 'every host has it') : { signers: rest, entries: [] }
  return finish(facts, begin(facts), handed.signers, [...entries, ...handed.entries])
}

/**
 * A store that was restored has a lower number than it has handed out, and hosts refuse that. `highest`: of what nodes have reported. One
 * above the present time was never handed out. Null: nothing is to be done.
 */
export const decideRenumber = (facts: Omit<SignerFacts, 'made'>, highest: number): SignersDecided | null => {
  const { row, by, nowMs, toleranceMs } = facts
  if (highest <= row.value.number || highest > nowMs + toleranceMs) return null
  const number = Math.max(highest + 1, nowMs)
  const entries = [entry(by, nowMs, 'signer.renumbered', {}, { number, reported: highest })]
  return written(row, { ...row.value, number }, entries)
}

const nextOf = ({ signers }: TaskSigners): Signer | null => signers.find(({ state }) => state.kind === 'next') ?? null

const latestFirst = (one: Signer, other: Signer): number => other.state.sinceMs - one.state.sinceMs

/** What the change makes of number and version. */
type Step = { readonly number: number; readonly version: number }

const begin = ({ row, nowMs }: Pick<SignerFacts, 'row' | 'nowMs'>): Step => ({
  number: Math.max(row.value.number + 1, nowMs),
  version: Math.max(...row.value.signers.map(({ version }) => version)) + 1,
})

const madeSigner = ({ number, version }: Step, { made }: SignerFacts, state: SignerState): Signer => ({
  ...made,
  version,
  firstNumber: number,
  state,
})

const replaced = (signers: readonly Signer[], by: Signer): readonly Signer[] =>
  signers.map((one) => (one.key === by.key ? by : one))

const retired = (signer: Signer, nowMs: number): Signer => ({ ...signer, state: { kind: 'retired', sinceMs: nowMs } })

/** `successor` signs from now on, and the one that signs now has its grace. */
const handOver = (
  { by, nowMs, toleranceMs }: Pick<SignerFacts, 'by' | 'nowMs' | 'toleranceMs'>,
  signers: readonly Signer[],
  successor: Signer | null,
  why: string,
): { readonly signers: readonly Signer[]; readonly entries: readonly EntryDraft[] } => {
  if (successor === null) throw new Error('no task signer takes over')
  const before = signers.find(({ key, state }) => state.kind === 'signing' && key !== successor.key) ?? null
  const untilMs = nowMs + signerStepMs + toleranceMs
  const signing: Signer = { ...successor, state: { kind: 'signing', sinceMs: nowMs } }
  const inGrace = before === null ? [] : [{ ...before, state: { kind: 'grace', sinceMs: nowMs, untilMs } } as const]
  return {
    signers: [...inGrace, signing].reduce(replaced, signers),
    entries: [said(by, nowMs, 'signer.rotated', signing, { why, replaces: before?.key ?? null })],
  }
}

const said = (
  by: Attribution,
  nowMs: number,
  type: EntryDraft['type'],
  { key, version }: Signer,
  more: EntryBody,
): EntryDraft => entry(by, nowMs, type, {}, { key, version, ...more })

const finish = (
  { row }: Pick<SignerFacts, 'row'>,
  { number }: Step,
  signers: readonly Signer[],
  entries: readonly EntryDraft[],
): SignersDecided => written(row, { number, signers: bounded(signers) }, entries)

/** A withdrawn one that is left out is refused as unknown. */
const bounded = (signers: readonly Signer[]): readonly Signer[] => {
  const kept = (kind: SignerState['kind']): ReadonlySet<Signer> =>
    new Set(
      signers
        .filter(({ state }) => state.kind === kind)
        .sort((one, other) => other.version - one.version)
        .slice(0, mostOfEach),
    )
  const listed = [kept('withdrawn'), kept('retired')]
  return signers.filter((one) => isVerifier(one) || listed.some((some) => some.has(one)))
}

const written = (
  row: Row<TaskSigners> | null,
  signers: TaskSigners,
  entries: readonly EntryDraft[],
): SignersDecided => ({
  ...decided({
    reads: [readOf('task-signers', signersKey, row)],
    writes: [{ put: 'task-signers', value: signers }],
    entries: entries as unknown as Change['entries'],
  }),
  signers,
})
