// What an agent says of its outputs: which leaf is in place on the host, and what could not be put there.

import { nodeDecided, readOf, type NodeDecided, type NodeFacts, type Row } from '#domain/core/change.ts'
import { reconcileConditions, type Unchanged } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { ConditionName } from '#domain/core/node.ts'
import { leavesOf, programsEnded, type Program } from './program.ts'

export type OutputShown = {
  readonly name: string
  /** The folder that its program reads; null: this host has none for it, or its agent does not say. */
  readonly place: string | null
  /** Of the leaf that programs read now; null: none. */
  readonly serial: string | null
  readonly failure: string | null
}

/** All that an agent said last, in this epoch: what it said in an earlier one is about other leaves, or about another machine. */
export type OutputsReport = { readonly epoch: number; readonly outputs: readonly OutputShown[] }

export type OutputsShownFacts = NodeFacts & {
  readonly shown: readonly OutputShown[]
  /** Of every epoch. */
  readonly programs: readonly Row<Program>[]
  readonly domain: Row<DomainSettings>
}

const about = ['output_failed'] as const satisfies readonly ConditionName[]

/** What a program wrote is in brackets, and may have the time in it: the next try that fails in the same way is no news. */
const withoutDetail = (failure: string): string => failure.replace(/ \(.*$/s, '')

/**
 * A new epoch leaves the leaves of the one before good until its own are in place: then they end here. A report is complete: what
 * it no longer shows as failed works.
 */
export const decideOutputsShown = (facts: OutputsShownFacts): NodeDecided | Unchanged => {
  const { node, shown, programs, domain, by, nowMs } = facts
  const failed = shown.filter(({ failure }) => failure !== null)
  const reported = failed.slice(0, 1).map(({ name, failure }) => ({
    name: 'output_failed' as const,
    reason: `output ${name}: ${withoutDetail(failure ?? '')}`,
    evidence: { output: name, failure, outputs: failed.length },
  }))
  const conditions = reconcileConditions({ node, by, nowMs, about, newestReason: about, reported })
  const inPlace = new Set(shown.filter((one) => isInPlace(one, facts)).map(({ name }) => name))
  const ended = programsEnded(
    {
      ...{ programs, by, nowMs, toleranceMs: domain.value.clockToleranceMs },
      why: 'the leaf of a later epoch is in place',
      reason: 'superseded',
    },
    ({ epoch, output }) => epoch < node.value.epoch && inPlace.has(output),
  )
  const [first, ...rest] = ended.entries
  if (first === undefined) return conditions
  const { change, node: next } = conditions.kind === 'unchanged' ? { change: null, node: node.value } : conditions
  const entries = [...(change?.entries ?? []), first, ...rest] as unknown as Parameters<typeof nodeDecided>[2]
  return nodeDecided(node, next, entries, {
    reads: [readOf('domain', 'domain', domain), ...ended.reads],
    writes: ended.writes,
  })
}

const isInPlace = ({ name, serial }: OutputShown, { node, programs }: OutputsShownFacts): boolean =>
  serial !== null &&
  programs.some(
    ({ value: { epoch, output, current, former } }) =>
      epoch === node.value.epoch && output === name && (current?.serial === serial || former?.serial === serial),
  )

/** An output in figures; there is one of each name. */
export type OutputSeen = {
  readonly name: string
  /** When the leaf that the program reads expires; null: it reads none that is known here. */
  readonly endsMs: number | null
  readonly inPlace: boolean
}

export const outputsSeen = (
  shown: readonly OutputShown[],
  programs: readonly Row<Program>[],
): readonly OutputSeen[] => {
  const leaves = programs.flatMap(({ value }) => leavesOf(value).map((leaf) => ({ ...leaf, output: value.output })))
  const seen = new Map<string, OutputSeen>()
  for (const { name, serial, failure } of shown) {
    const endsMs = leaves.find((leaf) => leaf.output === name && leaf.serial === serial)?.notAfterMs ?? null
    const one = { name, endsMs, inPlace: serial !== null && failure === null }
    const before = seen.get(name)
    // A second series with the same labels would make Prometheus drop the whole answer, with every other node in it.
    seen.set(name, before === undefined ? one : worseOf(before, one))
  }
  return [...seen.values()]
}

const worseOf = (one: OutputSeen, other: OutputSeen): OutputSeen => ({
  name: one.name,
  endsMs:
    one.endsMs === null || other.endsMs === null ? (one.endsMs ?? other.endsMs) : Math.min(one.endsMs, other.endsMs),
  inPlace: one.inPlace && other.inPlace,
})
