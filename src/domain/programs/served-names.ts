// The names of the plane: every one that it has served on any listener is its own for good, so that no program ever gets a
// certificate for it (ruling 20). A name that its configuration has no longer stays in its certificates until no node needs it,
// or an operator drops it.

import {
  decided,
  entry,
  mergeParts,
  readOf,
  type Attribution,
  type ChangePart,
  type Decided,
  type Row,
} from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { bareName, type NameClaim, type NameHolder, type PlaneHolder } from './name-claim.ts'

/** Without the brackets of an IPv6 address. */
export const hostOfUrl = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')

/** Names in certificates by their kind. */
export const certificateNames = (names: readonly string[]): { readonly dns: string[]; readonly ip: string[] } => ({
  dns: names.filter((name) => name.startsWith('dns:')).map(bareName),
  ip: names.filter((name) => name.startsWith('ip:')).map(bareName),
})

export type ServedClaim = NameClaim & { readonly holder: PlaneHolder }

export const isOfPlane = (claim: NameClaim): claim is ServedClaim => claim.holder.kind === 'plane'

/** In the certificates of the plane, whether or not its configuration has it. */
export const isInCertificates = ({ holder }: ServedClaim): boolean =>
  holder.use === 'certificate' && holder.dropped === null

export type WantedName = {
  readonly name: string
  readonly use: PlaneHolder['use']
  /** The plane has it in its URLs. */
  readonly named: boolean
  readonly row: Row<NameClaim> | null
  /** Of a wildcard: a name below it that is in its way; null: none is. */
  readonly below: NameClaim | null
}

/** `claim`: of the name itself, or of one below it that it would cover. */
export type NameHeld = { readonly kind: 'held'; readonly name: string; readonly claim: NameClaim }

/** Whether a machine other than the plane has it, or could still show a leaf with it that a clock may take for good, denied or not. */
export const isInTheWay = ({ holder, carriedUntilMs }: NameClaim, nowMs: number): boolean =>
  holder.kind === 'node' || carriedUntilMs > nowMs

/** What makes these names the plane's, in the commit that takes them into use. */
export const takeNames = (
  wanted: readonly WantedName[],
  by: Attribution,
  nowMs: number,
): { readonly kind: 'part'; readonly part: Required<ChangePart> } | NameHeld => {
  const parts: ChangePart[] = []
  for (const { name, use, named, row, below } of wanted) {
    const reads = [readOf('name-claim', name, row)]
    const mine = row?.value.holder.kind === 'plane' ? row.value.holder : null
    const others = mine === null ? [row?.value ?? null, below] : []
    const held = others.find((claim) => claim !== null && isInTheWay(claim, nowMs)) ?? null
    if (held !== null) return { kind: 'held', name, claim: held }
    if (mine !== null && mine.dropped === null && (mine.use === 'certificate' || use === 'address')) {
      parts.push({ reads })
      continue
    }
    const holder: PlaneHolder = {
      kind: 'plane',
      use: mine?.use === 'certificate' ? 'certificate' : use,
      joinStrings: mine?.joinStrings ?? 0,
      namedAtMs: named ? nowMs : (mine?.namedAtMs ?? null),
      // Also one that was dropped and stayed the address of a listener.
      retaken: mine !== null && (mine.dropped !== null || mine.namedAtMs !== null),
      dropped: null,
    }
    const carriedUntilMs = row?.value.carriedUntilMs ?? 0
    const value: NameClaim = { name, holder, sinceMs: nowMs, by: by.actor, carriedUntilMs }
    const body = { name: bareName(name), use: holder.use }
    parts.push({
      reads,
      writes: [{ put: 'name-claim', value }],
      entries: [entry(by, nowMs, 'domain.name_taken', {}, body)],
    })
  }
  return { kind: 'part', part: mergeParts(parts) }
}

/** Since when the plane has been called by it: what was handed out before may have another name. */
export const calledSinceMs = ({ holder, sinceMs }: ServedClaim): number => holder.namedAtMs ?? sinceMs

/** When the plane came back to it, after it had been called by another; null: it has not. */
export const returnedAtMs = ({ holder, sinceMs }: ServedClaim): number | null =>
  holder.namedAtMs === sinceMs && !holder.retaken ? null : holder.namedAtMs

export type CallFacts = {
  /** Of the name in the URLs of this plane. */
  readonly row: Row<ServedClaim>
  readonly others: readonly ServedClaim[]
  /** The names in the configuration of this plane. */
  readonly configured: readonly string[]
  readonly by: Attribution
  readonly nowMs: number
}

/**
 * Once at a start: the plane is called by this name again where another one was in its URLs since. What a release before 0.4.0 did not
 * write down is written now: else a later change to another name of the configuration, and back, would not be noticed.
 */
export const decideCalled = (facts: CallFacts): Decided | Unchanged => {
  const { row, by, nowMs } = facts
  const { holder, name, sinceMs } = row.value
  const latestMs = latestCallMs(facts)
  if (latestMs === null && holder.namedAtMs !== null) return { kind: 'unchanged' }
  const namedAtMs = latestMs === null ? sinceMs : Math.max(nowMs, latestMs + 1)
  const value: ServedClaim = { ...row.value, holder: { ...holder, namedAtMs } }
  const body = { name: bareName(name), use: holder.use, again: latestMs !== null }
  return decided({
    reads: [readOf('name-claim', name, row)],
    writes: [{ put: 'name-claim', value }],
    entries: [entry(by, nowMs, 'domain.name_taken', {}, body)],
  })
}

/** When another name was in the URLs later than this one; null: none was. */
const latestCallMs = ({ row: { value: mine }, others, configured }: CallFacts): number | null => {
  const calls = others.flatMap((one) => one.holder.namedAtMs ?? [])
  const isKnown = mine.holder.namedAtMs !== null || calls.length > 0
  if (isKnown) return laterThan(mine.holder.namedAtMs ?? -1, calls)
  // All of them from before 0.4.0: which of them was in the URLs is not known, so each may have been. Of two that came with one
  // certificate it matters where the other one is not configured any more: tokens of then may have it.
  const served = others.filter(isInCertificates)
  const cameWithIt = served.find(({ name, sinceMs }) => sinceMs === mine.sinceMs && !configured.includes(name))
  const later = served.map(({ sinceMs }) => sinceMs)
  return laterThan(mine.sinceMs, later) ?? cameWithIt?.sinceMs ?? null
}

/** The latest of these times, if it is later; null: none is. */
const laterThan = (thanMs: number, times: readonly number[]): number | null => {
  const latestMs = Math.max(0, ...times)
  return latestMs > thanMs ? latestMs : null
}

export type TakenFacts = { readonly row: Row<NameClaim>; readonly why: string } & Pick<CallFacts, 'by' | 'nowMs'>

/** Undoes `takeNames` of a name that no listener has served yet; one that the plane had before is as it was, dropped. */
export const decideGiveBack = ({ row, why, by, nowMs }: TakenFacts): Decided | Unchanged => {
  const { holder, name } = row.value
  if (holder.kind !== 'plane' || holder.dropped !== null) return { kind: 'unchanged' }
  const before: NameHolder = holder.retaken ? { ...holder, dropped: { atMs: nowMs, by: by.actor } } : { kind: 'nobody' }
  return decided({
    reads: [readOf('name-claim', name, row)],
    writes: [{ put: 'name-claim', value: { ...row.value, holder: before, sinceMs: nowMs, by: by.actor } }],
    entries: [entry(by, nowMs, 'domain.name_dropped', {}, { name: bareName(name), why })],
  })
}

export type DropFacts = {
  readonly host: string
  readonly row: Row<NameClaim> | null
  /** The configuration of this plane has it as a name. */
  readonly configured: boolean
  /** A listener of this plane has it as its address, so that it is not given up altogether. */
  readonly listensThere: boolean
  /** Why it goes: in words. */
  readonly why: string
  readonly extra: ChangePart
  readonly by: Attribution
  readonly nowMs: number
}

export type NameDropped = Decided & { readonly claim: ServedClaim }

export const decideDropName = (facts: DropFacts): NameDropped | Refusal => {
  const { host, row, by, nowMs, extra } = facts
  const unfit = dropUnfit(facts)
  if (unfit !== null) return unfit
  if (row === null || !isOfPlane(row.value)) return refuse('NAME_NOT_FOUND', host)
  const holder: PlaneHolder = facts.listensThere
    ? { ...row.value.holder, use: 'address' }
    : { ...row.value.holder, dropped: { atMs: nowMs, by: by.actor } }
  const claim: ServedClaim = { ...row.value, holder }
  const { reads = [], writes = [], entries = [] } = extra
  return {
    ...decided({
      reads: [readOf('name-claim', claim.name, row), ...reads],
      writes: [{ put: 'name-claim', value: claim }, ...writes],
      entries: [entry(by, nowMs, 'domain.name_dropped', {}, { name: host, why: facts.why }), ...entries],
    }),
    claim,
  }
}

export const dropUnfit = (facts: Pick<DropFacts, 'host' | 'row' | 'configured' | 'listensThere'>): Refusal | null => {
  const { host, row, configured, listensThere } = facts
  if (row === null || !isOfPlane(row.value)) return refuse('NAME_NOT_FOUND', host)
  const { dropped, use } = row.value.holder
  if (dropped !== null) return refuse('NAME_NOT_FOUND', `${host} is not served any more`)
  return configured || (listensThere && use === 'address') ? refuse('NAME_CONFIGURED', host) : null
}

const retakenKeptMs = 86_400_000

/**
 * Replicas with different configurations would drop and claim a name in turns: one that was claimed again is not dropped without
 * an operator for a day.
 */
export const wasJustRetaken = ({ holder, sinceMs }: ServedClaim, nowMs: number): boolean =>
  holder.retaken && nowMs - sinceMs < retakenKeptMs

/** One more join string without a secret goes out with this name. */
export const countJoinString = (row: Row<NameClaim> | null): Pick<ChangePart, 'reads' | 'writes'> => {
  if (row === null || !isOfPlane(row.value)) return {}
  const { holder } = row.value
  const value: NameClaim = { ...row.value, holder: { ...holder, joinStrings: holder.joinStrings + 1 } }
  return {
    reads: [readOf('name-claim', value.name, row)],
    writes: [{ put: 'name-claim', value }],
  }
}
