// What is known of a machine besides its identity, and what it comes to.

import { resourceStates } from '#domain/core/hardware-profile.ts'
import { type MachineView, type MachineRequest, hardwareApi } from '#wire/fleet/hardware-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { nodeName } from '#cli/kit/arguments.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { changeAll } from './ask-each.ts'
import { changing, onNodes, type NodeVerbOptions } from './on-nodes.ts'
import { filterNames } from './select-options.ts'

type MachineOptions = NodeVerbOptions & {
  readonly firmware?: string
  readonly slot?: readonly string[]
  readonly removeSlot?: readonly string[]
  readonly ready?: boolean
  readonly evidence?: readonly string[]
}

/** Without options it shows one machine; with them it reports. */
export const nodeMachine = async (cli: Cli, options: MachineOptions, words: readonly string[]): Promise<void> => {
  if (options.apply !== undefined || Object.keys(reportOf(options)).length > 0) return report(cli, options, words)
  const [word, ...more] = words
  if (word === undefined || more.length > 0 || isSelecting(options))
    throw usageFailure('Which machine?', 'muster node machine ID; what to report of many: muster node machine --help')
  const id = nodeName(word)
  showMachine(cli, options, await connect(cli, options).ask(hardwareApi.machine, { params: { id }, about: { ID: id } }))
}

/** Nothing of it shows a machine. */
const isSelecting = (options: MachineOptions): boolean =>
  options.plan === true ||
  options.yes === true ||
  options.from !== undefined ||
  filterNames.some((name) => options[name] !== undefined)

const report = onNodes<MachineOptions>({
  verb: 'machine',
  kind: 'change-nodes',
  actionOn: changing((options) => ({ verb: 'machine', report: reportOf(options) })),
  onIds: async (cli, options, ids) => {
    const body = reportOf(options)
    const ask = (plane: OperatorClient, id: string) =>
      plane.tryAsk(hardwareApi.reportMachine, { params: { id }, body, about: { ID: id } })
    const [id, ...more] = ids
    if (id === undefined || more.length > 0) return changeAll<MachineView>(cli, options, ids, ask, machineWords)
    const answer = await ask(connect(cli, options), id)
    if (answer instanceof Failure) throw answer
    showMachine(cli, options, answer)
  },
})

const machineWords = ({ sku, firmware }: MachineView) =>
  [sku === null ? 'no sku' : `sku ${sku}`, firmware === null ? '' : `firmware ${firmware}`] as const

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
