// The names and addresses that an operator registered for a node. Its programs get certificates for these and for what templates
// make of them, and for nothing that a node reports (ruling 19).

import {
  boundedText,
  decided,
  entry,
  readOf,
  type Attribution,
  type Decided,
  type Read,
  type Row,
} from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { bareName, holderInWords, isDnsName, readName, wildcardOver, type NameClaim } from './name-claim.ts'
import type { Output } from './output.ts'
import { programsEnded, type Program } from './program.ts'

/** Registered for one node. Each gives a name for every template of an output, and all of them travel in a configuration. */
export const mostNames = 8
/** All of them together have at most this many characters. */
const longestNames = 512

export type ClaimFact = {
  readonly name: string
  readonly claim: Row<NameClaim> | null
  readonly holder: Row<Node> | null
  /** Of the wildcard that covers the name: the plane may serve under one. */
  readonly wildcard: Row<NameClaim> | null
}

type NamesFacts = {
  readonly node: Row<Node>
  /** Those of the node, registered and derived. */
  readonly held: readonly Row<NameClaim>[]
  readonly by: Attribution
  readonly nowMs: number
}

export type NamesDecided = Decided & { readonly names: readonly string[] }

/** The canonical forms of what an operator wrote, each once. */
export const readNames = (texts: readonly string[]): readonly string[] | Refusal => {
  const names = new Set<string>()
  for (const text of texts) {
    const read = readName(text)
    if (read.kind === 'wrong') return refuse('NAME_INVALID', boundedText(read.why))
    names.add(read.name)
  }
  return [...names]
}

export const registeredNames = (held: readonly { readonly value: NameClaim }[], node: NodeId): readonly string[] =>
  held
    .map(({ value }) => value)
    .filter(({ holder }) => holder.kind === 'node' && holder.node === node && !holder.derived)
    .map(({ name }) => name)
    .sort()

/** What a leaf of this output carries: templates over registered names, and addresses where it takes them. */
export const leafNames = ({ dns, addresses }: Pick<Output, 'dns' | 'addresses'>, registered: readonly string[]) => {
  const made = registered.filter(isDnsName).flatMap((name) => dns.map((one) => one.replace('{name}', bareName(name))))
  const fit = made.map(readName).flatMap((read) => (read.kind === 'name' ? [read.name] : []))
  return [...new Set([...fit, ...(addresses ? registered.filter((name) => !isDnsName(name)) : [])])].sort()
}

/** Null: this node may have it. A tombstone, or a node that was purged, has no leaves that are good, so it keeps no name from others. */
export const nameTaken = ({ name, claim, holder, wildcard }: ClaimFact, node: NodeId): Refusal | null => {
  if (wildcard !== null && wildcard.value.holder.kind === 'plane') {
    return refuse('NAME_TAKEN', `${bareName(name)} belongs to ${holderInWords(wildcard.value) ?? 'nobody'}`)
  }
  if (claim === null) return null
  const { holder: held } = claim.value
  if (held.kind === 'nobody' || (held.kind === 'node' && held.node === node)) return null
  if (held.kind === 'node' && (holder === null || holder.value.membership.kind === 'revoked')) return null
  return refuse('NAME_TAKEN', `${bareName(name)} belongs to ${holderInWords(claim.value) ?? 'nobody'}`)
}

/** What a decision to give a name relied on. */
export const claimReads = ({ name, claim, holder, wildcard }: ClaimFact): readonly Read[] => [
  readOf('name-claim', name, claim),
  ...[wildcardOver(name)].flatMap((over) => (over === null ? [] : [readOf('name-claim', over, wildcard)])),
  ...(holder === null ? [] : [readOf('node', holder.value.id, holder)]),
]

export const claimedBy = (
  { name, claim }: Pick<ClaimFact, 'name' | 'claim'>,
  node: NodeId,
  derived: boolean,
  by: Attribution,
  sinceMs: number,
): NameClaim => ({
  name,
  holder: { kind: 'node', node, derived },
  sinceMs,
  by: by.actor,
  carriedUntilMs: claim?.value.carriedUntilMs ?? 0,
})

export type AddNamesFacts = NamesFacts & { readonly adding: readonly ClaimFact[] }

/** Repeated, it changes nothing. */
export const decideAddNames = (
  facts: AddNamesFacts,
): NamesDecided | { readonly kind: 'unchanged'; readonly names: readonly string[] } | Refusal => {
  const { node, held, adding, by, nowMs } = facts
  const { id, epoch, membership } = node.value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const before = registeredNames(held, id)
  const fresh = adding.filter(({ name }) => !before.includes(name))
  if (fresh.length === 0) return { kind: 'unchanged', names: before }
  for (const one of fresh) {
    const taken = nameTaken(one, id)
    if (taken !== null) return taken
  }
  const names = [...before, ...fresh.map(({ name }) => name)].sort()
  if (names.length > mostNames) return refuse('NAME_INVALID', `a node has at most ${mostNames} names and addresses`)
  if (names.join('').length > longestNames) {
    return refuse('NAME_INVALID', `the names of a node have at most ${longestNames} characters together`)
  }
  return {
    ...decided({
      reads: [readOf('node', id, node), ...fresh.flatMap(claimReads)],
      // The row of the node orders all that is done about its programs.
      writes: [
        { put: 'node', value: node.value },
        ...fresh.map((one) => ({ put: 'name-claim', value: claimedBy(one, id, false, by, nowMs) }) as const),
      ],
      entries: [entry(by, nowMs, 'node.names_added', { node: id, epoch }, { names: fresh.map(({ name }) => name) })],
    }),
    names,
  }
}

export type RemoveNamesFacts = NamesFacts & {
  readonly removing: readonly string[]
  /** Of every epoch. */
  readonly programs: readonly Row<Program>[]
  /** What its profile and its vCluster list now. */
  readonly outputs: readonly Output[]
  readonly domain: Row<DomainSettings>
}

/**
 * Together with what templates had made of them. Leaves that carry one are denied in the same change, and only then may another
 * node have it.
 */
export const decideRemoveNames = (facts: RemoveNamesFacts): NamesDecided | Refusal => {
  const { node, held, removing, programs, outputs, domain, by, nowMs } = facts
  const { id, epoch } = node.value
  const foreign = removing.find((name) => !held.some(({ value }) => value.name === name))
  if (foreign !== undefined) return refuse('NAME_NOT_HELD', `${bareName(foreign)} is not a name of ${id}`)
  const names = registeredNames(held, id).filter((name) => !removing.includes(name))
  const derivable = new Set(outputs.flatMap((output) => leafNames(output, names)))
  const isOver = ({ name, holder }: NameClaim): boolean =>
    removing.includes(name) || (holder.kind === 'node' && holder.derived && !derivable.has(name))
  const released = held.filter(({ value }) => isOver(value))
  const gone = new Set(released.map(({ value }) => value.name))
  const ended = programsEnded(
    {
      ...{ programs, by, nowMs, toleranceMs: domain.value.clockToleranceMs },
      why: 'a name that it carries was taken from the node',
      reason: 'superseded',
    },
    (_, leaf) => leaf.names.some((name) => gone.has(name)),
  )
  return {
    ...decided({
      reads: [
        readOf('node', id, node),
        readOf('domain', 'domain', domain),
        ...released.map((row) => readOf('name-claim', row.value.name, row)),
        ...ended.reads,
      ],
      writes: [
        { put: 'node', value: node.value },
        ...released.map(
          ({ value }) =>
            ({
              put: 'name-claim',
              value: { ...value, holder: { kind: 'nobody' }, sinceMs: nowMs, by: by.actor },
            }) as const,
        ),
        ...ended.writes,
      ],
      entries: [
        entry(by, nowMs, 'node.names_removed', { node: id, epoch }, { names: [...gone].sort() }),
        ...ended.entries,
      ],
    }),
    names,
  }
}
