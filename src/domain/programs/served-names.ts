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
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { bareName, type NameClaim, type PlaneHolder } from './name-claim.ts'

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
  readonly row: Row<NameClaim> | null
  /** A node of which a program has a leaf with this name that has not expired. */
  readonly carriedBy: NodeId | null
}

/** `how`: an operator registered it for the node, or a leaf of one of its programs still carries it. */
export type NameHeld = {
  readonly kind: 'held'
  readonly name: string
  readonly node: NodeId
  readonly how: 'registered' | 'carried'
}

/** What makes these names the plane's, in the commit that takes them into use. */
export const takeNames = (
  wanted: readonly WantedName[],
  by: Attribution,
  nowMs: number,
): { readonly kind: 'part'; readonly part: Required<ChangePart> } | NameHeld => {
  const parts: ChangePart[] = []
  for (const { name, use, row, carriedBy } of wanted) {
    const held = row === null ? null : row.value.holder
    if (held?.kind === 'node') return { kind: 'held', name, node: held.node, how: 'registered' }
    const reads = [readOf('name-claim', name, row)]
    const mine = held?.kind === 'plane' ? held : null
    if (mine === null && carriedBy !== null) return { kind: 'held', name, node: carriedBy, how: 'carried' }
    if (mine !== null && mine.dropped === null && (mine.use === 'certificate' || use === 'address')) {
      parts.push({ reads })
      continue
    }
    const holder: PlaneHolder = {
      kind: 'plane',
      use: mine?.use === 'certificate' ? 'certificate' : use,
      joinStrings: mine?.joinStrings ?? 0,
      retaken: mine !== null && mine.dropped !== null,
      dropped: null,
    }
    const value: NameClaim = { name, holder, sinceMs: nowMs, by: by.actor }
    const body = { name: bareName(name), use: holder.use }
    parts.push({
      reads,
      writes: [{ put: 'name-claim', value }],
      entries: [entry(by, nowMs, 'domain.name_taken', {}, body)],
    })
  }
  return { kind: 'part', part: mergeParts(parts) }
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
