// What is known of a machine besides its identity, and what it comes to.

import { resourceStates } from '#domain/core/hardware-profile.ts'
import { type MachineView, type MachineRequest, hardwareApi } from '#wire/fleet/hardware-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

type MachineOptions = GlobalOptions & {
  readonly firmware?: string
  readonly slot?: readonly string[]
  readonly removeSlot?: readonly string[]
  readonly ready?: boolean
  readonly evidence?: readonly string[]
}

/** Without options it shows; with them it reports. */
export const nodeMachine = async (cli: Cli, options: MachineOptions, id: string): Promise<void> => {
  const plane = connect(cli, options)
  const body = reportOf(options)
  const about = { ID: id }
  const machine =
    Object.keys(body).length === 0
      ? await plane.ask(hardwareApi.machine, { params: { id }, about })
      : await plane.ask(hardwareApi.reportMachine, { params: { id }, body, about })
  showMachine(cli, options, machine)
}

const reportOf = ({ firmware, slot = [], removeSlot = [], ready, evidence = [] }: MachineOptions): MachineRequest => {
  if (evidence.length > 0 && ready === undefined) throw usageFailure('--evidence goes with --ready or --no-ready')
  return {
    ...(firmware === undefined ? {} : { firmware }),
    ...(slot.length === 0 ? {} : { slots: slot.map(slotFrom) }),
    ...(removeSlot.length === 0 ? {} : { remove_slots: [...removeSlot] }),
    ...(ready === undefined ? {} : { readiness: { ready, evidence: Object.fromEntries(evidence.map(pairFrom)) } }),
  }
}

const slotFrom = (text: string): NonNullable<MachineRequest['slots']>[number] => {
  const [, name, given, detail] = /^([^=]+)=([a-z_]+)(?::(.+))?$/.exec(text) ?? []
  const state = resourceStates.find((one) => one === given)
  if (name === undefined || state === undefined) {
    throw usageFailure(
      `--slot takes NAME=STATE or NAME=STATE:DETAIL with one of ${resourceStates.join(', ')}, not ${text}`,
    )
  }
  return { name, state, ...(detail === undefined ? {} : { detail }) }
}

const pairFrom = (text: string): [string, string] => {
  const at = text.indexOf('=')
  if (at < 1) throw usageFailure(`--evidence takes NAME=VALUE, not ${text}`)
  return [text.slice(0, at), text.slice(at + 1)]
}

export const showMachine = (cli: Cli, options: GlobalOptions, machine: MachineView): void =>
  printer(cli, options).answer(machine, () =>
    renderFacts([
      ['node', machine.node],
      ['sku', machine.sku ?? 'none'],
      ['hardware profile', machine.hardware_profile ?? 'none'],
      ...(machine.why.length === 0 ? [] : [['missing', machine.why] as const]),
      ['tags', machine.tags.length === 0 ? 'none' : machine.tags.join(', ')],
      ['firmware', machine.firmware ?? 'not known'],
      ['ready', machine.readiness === null ? 'not known' : readinessWords(machine.readiness)],
      ['slots', machine.slots.length === 0 ? 'none' : machine.slots.map(slotWords)],
    ]),
  )

const readinessWords = ({ ready, evidence, by, at }: NonNullable<MachineView['readiness']>): string => {
  const shown = Object.entries(evidence).map(([name, value]) => `${name} ${value ?? 'unknown'}`)
  return `${ready ? 'yes' : 'no'}, said ${by} at ${at}${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`
}

const slotWords = ({ name, state, detail }: MachineView['slots'][number]): string =>
  `${name}: ${state}${detail === null ? '' : `, ${detail}`}`
