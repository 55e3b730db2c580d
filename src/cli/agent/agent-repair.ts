import { longestBundle, takeRepairBundle } from '#agent/recovery/repair.ts'
import { isRunning } from '#agent/diagnostics/status.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { agentFolder, lookedAt, type AgentFolderOptions } from './agent-folder.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { readText } from '#cli/kit/read-text.ts'

type RepairOptions = GlobalOptions & AgentFolderOptions & { readonly bundleFile?: string }

export const agentRepair = async (cli: Cli, options: RepairOptions): Promise<void> => {
  if (options.bundleFile === undefined)
    throw usageFailure('No bundle is named.', 'muster agent repair --bundle-file FILE, or - for standard input')
  const folder = agentFolder(cli, options)
  const text = await readText(cli, options.bundleFile, longestBundle)
  const { node_id, domain, issued } = taken(folder, text, cli.clock.nowMs())
  const running = lookedAt(() => {
    const status = readStatusFile(folder)
    return status !== null && isRunning(status)
  })
  const print = printer(cli, options)
  print.answer({ node_id, domain, expires_at: issued.expires_at, running }, () => [
    printable(`The repair bundle for ${node_id} is in ${folder}, good until ${issued.expires_at}.`),
  ])
  print.note(
    running
      ? 'the agent uses it within a second: muster agent explain'
      : 'start the agent: systemctl start muster-agent',
  )
}

const taken = (folder: string, text: string, nowMs: number): RepairBundle => {
  const outcome = lookedAt(() => takeRepairBundle(folder, text, nowMs))
  switch (outcome.kind) {
    case 'taken':
      return outcome.bundle
    case 'unusable':
      throw new Failure({
        exit: exitCodes.refused,
        code: 'BUNDLE_UNUSABLE',
        sentence: `${outcome.why.slice(0, 1).toUpperCase()}${outcome.why.slice(1)}.`,
        next: 'Make one for this node: muster node repair-bundle ID --reason REASON --out FILE',
      })
    case 'not-written':
      throw new Failure({
        exit: exitCodes.notAllowed,
        code: 'NOT_PERMITTED',
        sentence: `${folder} cannot be written.`,
        detail: outcome.errno,
        next: 'Run this as the user of the agent, or as root',
      })
  }
}
