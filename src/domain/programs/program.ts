// The leaves of one output on one node, in one epoch.

import type { Denial, DenialReason } from '#domain/core/certificate.ts'
import { entry, readOf, type Attribution, type ChangePart, type Row } from '#domain/core/change.ts'
import type { NodeId, Slot } from '#domain/core/node.ts'

export type Program = {
  readonly node: NodeId
  readonly epoch: number
  readonly output: string
  /** Null: it has ended. */
  readonly current: ProgramLeaf | null
  /** The one before, which the program on the host may still use. */
  readonly former: ProgramLeaf | null
  /** Nothing of it is good any more; a leaf that is signed later starts it again. */
  readonly ended: { readonly atMs: number; readonly why: string } | null
}

/** `names`: its DNS names and addresses, as `NameClaim` writes them. */
export type ProgramLeaf = Slot & { readonly names: readonly string[] }

export const programKey = ({ node, epoch, output }: Pick<Program, 'node' | 'epoch' | 'output'>): string =>
  `${node}/${epoch}/${output}`

/** Newest first, those included that have expired. */
export const leavesOf = ({ current, former }: Program): readonly ProgramLeaf[] =>
  [current, former].filter((leaf) => leaf !== null)

/** Those that could still be valid. */
export const liveLeaves = (program: Program, nowMs: number): readonly ProgramLeaf[] =>
  leavesOf(program).filter(({ notAfterMs }) => notAfterMs > nowMs)

/** When the last of its leaves has expired. */
export const programEndsMs = ({ current, former, ended }: Program): number =>
  Math.max(current?.notAfterMs ?? 0, former?.notAfterMs ?? 0, ended?.atMs ?? 0)

/** Revocation lists keep it until the leaf has expired: a denial outlives the leaf by the tolerance. */
export const denialOfLeaf = (
  { issuer, serial, notAfterMs }: Pick<Slot, 'issuer' | 'serial' | 'notAfterMs'>,
  about: Pick<Denial, 'atMs' | 'why' | 'reason'> & { readonly toleranceMs: number },
) =>
  ({
    put: 'denial',
    value: {
      kind: 'certificate',
      issuer,
      serial,
      atMs: about.atMs,
      untilMs: notAfterMs + about.toleranceMs,
      why: about.why,
      reason: about.reason,
    },
  }) as const

export type EndingFacts = {
  /** Of one node, of every epoch that may still have leaves. Read behind the row of the node, which the same change writes. */
  readonly programs: readonly Row<Program>[]
  readonly why: string
  /** The reason as verifiers get it. */
  readonly reason: DenialReason
  readonly toleranceMs: number
  readonly by: Attribution
  readonly nowMs: number
}

/**
 * Denies leaves of programs, in the change it is a part of. Every issue of a leaf writes the row of its node, so a leaf that is
 * not among `programs` makes this change lose its race.
 */
export const programsEnded = (
  facts: EndingFacts,
  isOver: (program: Program, leaf: ProgramLeaf) => boolean = () => true,
): Required<ChangePart> => {
  const { programs, why, reason, toleranceMs, by, nowMs } = facts
  // Also those that have expired by this clock: it may be wrong, and then they are good again when it is corrected.
  const ending = programs
    .map((row) => ({ row, over: leavesOf(row.value).filter((leaf) => isOver(row.value, leaf)) }))
    .filter(({ over }) => over.length > 0)
  return {
    reads: ending.map(({ row }) => readOf('program', programKey(row.value), row)),
    writes: ending.flatMap(({ row, over }) => [
      { put: 'program', value: withoutLeaves(row.value, over, { atMs: nowMs, why }) } as const,
      ...over.map((leaf) => denialOfLeaf(leaf, { atMs: nowMs, why, reason, toleranceMs })),
    ]),
    entries: ending.map(({ row: { value }, over }) =>
      entry(
        by,
        nowMs,
        'program.ended',
        { node: value.node, epoch: value.epoch },
        { output: value.output, why, serials: over.map(({ serial }) => serial) },
      ),
    ),
  }
}

const withoutLeaves = (program: Program, over: readonly ProgramLeaf[], ended: Program['ended']): Program => {
  const kept = (leaf: ProgramLeaf | null): ProgramLeaf | null => (leaf === null || over.includes(leaf) ? null : leaf)
  const current = kept(program.current)
  const former = kept(program.former)
  return { ...program, current, former, ended: current === null && former === null ? ended : null }
}
