// Commands that look at the agent of this machine and at the machine itself, and their answer to a user without the rights.

import { agentStateFolder } from '#agent/core/config.ts'
import { errno, processOwner } from '#platform/files.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { agentStatus } from '#agent/diagnostics/status.ts'
import { printer } from '#cli/kit/print.ts'
import { printable, printableJson, shellWord } from '#cli/kit/printable.ts'
import { explainAgent, explanationLines } from '#agent/diagnostics/explain.ts'
import { passedOverInterfaces, systemReport, writeHardwareFile } from '#agent/core/hardware-report.ts'

export type AgentFolderOptions = { readonly state?: string }

export const agentFolder = (cli: Cli, options: AgentFolderOptions): string => agentStateFolder(options, cli.env)

/** Where no agent was found. The folder that the user named is not asked for again. */
export const noAgentStep = ({ state }: AgentFolderOptions): string =>
  state === undefined
    ? 'Start it: systemctl start muster-agent; or name its folder: --state FOLDER'
    : 'Start it: muster agent run'

/** What `look` finds in the folder of an agent, whose files are for its own user. */
export const lookedAt = <T>(look: () => T): T => {
  try {
    return look()
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(errno(error) ?? '')) throw error
    throw notPermitted(error instanceof Error ? error.message : String(error))
  }
}

export const notPermitted = (detail: string): Failure =>
  new Failure({
    exit: exitCodes.notAllowed,
    code: 'NOT_PERMITTED',
    sentence: 'You may not see what the agent says of itself.',
    detail,
    next: 'Run this as the user of the agent, or as root',
  })

export const showAgentStatus = (cli: Cli, options: GlobalOptions & AgentFolderOptions): Promise<void> => {
  const status = lookedAt(() => agentStatus(agentFolder(cli, options), cli.clock))
  printer(cli, options).answer(status, () =>
    status.sentences.map((sentence) => cli.hints.asCalled(printable(sentence))),
  )
  if (!status.healthy) cli.exit.finish(exitCodes.notReady)
  return Promise.resolve()
}

/** Succeeds with an explanation also where the agent or its files are broken. */
export const agentExplain = (cli: Cli, options: GlobalOptions & AgentFolderOptions): Promise<void> => {
  const explanation = lookedAt(() => explainAgent(agentFolder(cli, options), cli.clock))
  printer(cli, options).answer(explanation, () =>
    explanationLines(explanation).map((line) => cli.hints.asCalled(printable(line))),
  )
  return Promise.resolve()
}

export const agentReadHardware = (cli: Cli, options: GlobalOptions & { readonly out?: string }): Promise<void> => {
  const { hardware_identity, hardware_facts } = systemReport()
  const passedOver = passedOverInterfaces()
  const report = { ...hardware_identity, facts: hardware_facts }
  const print = printer(cli, options)
  if (options.out !== undefined) {
    const readers = write(options.out)
    print.note(
      `written to ${options.out}, which only its ${readers === 'owner' ? 'owner' : 'owner and its group'} can read`,
    )
    if (readers === 'owner' && processOwner().uid === 0) print.note(forAgent)
  }
  if (options.out === undefined || print.structured) print.answer(report, () => [printableJson(report, 2)])
  if (passedOver.length > 0)
    print.note(`passed over: ${passedOver.slice(0, mostPassedOver).join(', ')}${more(passedOver)}`)
  if (options.out === undefined) print.note(`next: ${registration(hardware_identity)}`)
  return Promise.resolve()
}

const forAgent =
  'an agent that is not root reads it in a folder of its group: install -d -m 0750 -g muster-agent /run/muster-agent-hardware'

/** A host of containers has hundreds. */
const mostPassedOver = 8
const more = ({ length }: readonly string[]): string =>
  length > mostPassedOver ? ` and ${length - mostPassedOver} more` : ''

type HardwareIdentity = ReturnType<typeof systemReport>['hardware_identity']

/** To be pasted where the plane is. */
const registration = ({ macs, bmc_serial: serial }: HardwareIdentity): string => {
  if (macs.length === 0) return 'This machine has no network card to be recognised by: it needs a token'
  const recognised = [
    ...macs.map((mac) => `--mac ${mac}`),
    ...(serial === null ? [] : [`--bmc-serial ${shellWord(serial)}`]),
  ]
  const hint = serial === null && processOwner().uid !== 0 ? ' (run as root it may find a serial number as well)' : ''
  return `muster node enroll ID --profile hpc-diskless ${recognised.join(' ')}${hint}`
}

const write = (file: string): ReturnType<typeof writeHardwareFile> => {
  try {
    return writeHardwareFile(file)
  } catch (error) {
    throw new Failure({
      exit: exitCodes.notAllowed,
      code: 'NOT_PERMITTED',
      sentence: `${file} cannot be written.`,
      detail: errno(error),
      next: 'Run this as root, or give --out a place you may write to',
    })
  }
}
