// How the outputs of a node stand: from what is listed for it, what was signed, and what its agent has said; and why one is not in
// place, or what failed of one that is. All functions here are pure.

import { withoutFullStop } from '#domain/core/in-words.ts'
import type { Output } from './output.ts'
import type { OutputShown, OutputsReport } from './outputs-shown.ts'
import type { Program, ProgramLeaf } from './program.ts'

export type OutputStanding = {
  readonly output: string
  /** `issued`: its agent has not said yet that this leaf is in place. */
  readonly state: 'in_place' | 'failed' | 'issued' | 'expired' | 'no_leaf'
  /** The newest. */
  readonly leaf: ProgramLeaf | null
  /** What its agent said last; null: nothing. */
  readonly shown: OutputShown | null
  /** Why it is not in place, or what failed after it was put there; null: it is in place, and nothing failed. */
  readonly why: string | null
}

export type StandingFacts = {
  /** Of its profile and its vCluster. */
  readonly outputs: readonly Output[]
  /** Of the node. */
  readonly epoch: number
  /** Of every epoch. */
  readonly programs: readonly Program[]
  /** Null: its agent has never said anything of outputs. */
  readonly report: OutputsReport | null
  readonly nowMs: number
}

export const outputStandings = ({
  outputs,
  epoch,
  programs,
  report,
  nowMs,
}: StandingFacts): readonly OutputStanding[] => {
  const said = report?.epoch === epoch ? report.outputs : null
  return outputs.map(({ name }) => {
    const program = programs.find((one) => one.output === name && one.epoch === epoch) ?? null
    const shown = said?.find((one) => one.name === name) ?? null
    const leaf = program?.current ?? null
    return { output: name, leaf, shown, ...standingOf(leaf, shown, program, { said, nowMs }) }
  })
}

const standingOf = (
  leaf: ProgramLeaf | null,
  shown: OutputShown | null,
  program: Program | null,
  { said, nowMs }: { readonly said: readonly OutputShown[] | null; readonly nowMs: number },
): Pick<OutputStanding, 'state' | 'why'> => {
  if (shown !== null && shown.failure !== null) return { state: 'failed', why: `its agent says: ${shown.failure}` }
  if (leaf === null) {
    const ended = program?.ended ?? null
    if (ended !== null) return { state: 'no_leaf', why: `its certificate was ended: ${ended.why}` }
    const why =
      said === null ? 'its agent has said nothing of outputs; one of 0.3 knows none' : 'it has no certificate yet'
    return { state: 'no_leaf', why }
  }
  if (leaf.notAfterMs <= nowMs)
    return { state: 'expired', why: 'its certificate has expired, and its agent has not got another' }
  if (shown?.serial === leaf.serial) return { state: 'in_place', why: null }
  return {
    state: 'issued',
    why: `certificate ${leaf.serial} is signed, and its agent has not said that it is in place`,
  }
}

/** For `node explain`: one for each that is not in place, or that something failed of. */
export const outputSentences = (standings: readonly OutputStanding[]): readonly string[] =>
  standings.flatMap((standing) => {
    const { output, why } = standing
    if (why === null) return []
    const where = isInPlace(standing) ? 'is in place, and something after that failed' : 'is not in place'
    return [`Output ${output} ${where}: ${withoutFullStop(why)}.`]
  })

/** The files of its newest leaf are, whatever failed after that: its program may not have read them. */
const isInPlace = ({ leaf, shown }: OutputStanding): boolean => leaf !== null && shown?.serial === leaf.serial
