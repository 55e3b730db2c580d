// `muster agent repair`: puts an operator's repair bundle where the agent of this machine looks for it, once a second.

import { DamagedCredentials, fileCredentialStore } from '#agent/identity/credential-store.ts'
import { noCredentials, type Credentials } from '#agent/identity/credentials.ts'
import { faultForNode, longestBundle, parseRepairBundle, putRepairBundle } from '#agent/recovery/repair-file.ts'
import { isRunning } from '#agent/status.ts'
import { readStatusFile } from '#agent/status-file.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { errno } from '#platform/files.ts'
import type { RepairBundle } from '#wire/recovery-api.ts'
import { agentFolder, lookedAt, type AgentFolderOptions } from './agent-folder.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure, usageFailure } from './failure.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'
import { readText } from './read-text.ts'

type RepairOptions = GlobalOptions & AgentFolderOptions & { readonly bundleFile?: string }

export const agentRepair = async (cli: Cli, options: RepairOptions): Promise<void> => {
  if (options.bundleFile === undefined)
    throw usageFailure('No bundle is named.', 'muster agent repair --bundle-file FILE, or - for standard input')
  const folder = agentFolder(cli, options)
  const text = await readText(cli, options.bundleFile, longestBundle)
  const bundle = checked(text, folder, cli.clock.nowMs())
  put(folder, text)
  const running = lookedAt(() => {
    const status = readStatusFile(folder)
    return status !== null && isRunning(status)
  })
  const print = printer(cli, options)
  print.answer(
    { node_id: bundle.node_id, domain: bundle.domain, expires_at: bundle.issued.expires_at, running },
    () => [
      printable(`The repair bundle for ${bundle.node_id} is in ${folder}, good until ${bundle.issued.expires_at}.`),
    ],
  )
  print.note(
    running
      ? 'the agent uses it within a second: muster agent explain'
      : 'start the agent: systemctl start muster-agent',
  )
}

const checked = (text: string, folder: string, nowMs: number): RepairBundle => {
  const read = parseRepairBundle(text)
  if (read.kind === 'unusable') throw unusable(`This is no repair bundle: ${read.why}.`)
  const fault = faultForNode(read.bundle, stored(folder).identity)
  if (fault !== null) throw unusable(`This bundle is not for this machine: ${fault}.`)
  // Only as far as this machine's clock can be believed; the plane has the last word.
  const expiresMs = parseIsoTime(read.bundle.issued.expires_at) ?? nowMs
  if (expiresMs < nowMs - clocksDifferMs) throw unusable(`This bundle expired at ${read.bundle.issued.expires_at}.`)
  return read.bundle
}

const clocksDifferMs = 86_400_000

/** Damaged credentials are a reason to repair, and none to refuse it. */
const stored = (folder: string): Credentials =>
  lookedAt(() => {
    try {
      return fileCredentialStore(folder).load()
    } catch (error) {
      if (error instanceof DamagedCredentials) return noCredentials
      throw error
    }
  })

const put = (folder: string, text: string): void => {
  try {
    putRepairBundle(folder, text)
  } catch (error) {
    throw new Failure({
      exit: exitCodes.notAllowed,
      code: 'NOT_PERMITTED',
      sentence: `${folder} cannot be written.`,
      detail: errno(error),
      next: 'Run this as the user of the agent, or as root',
    })
  }
}

const unusable = (sentence: string): Failure =>
  new Failure({
    exit: exitCodes.refused,
    code: 'BUNDLE_UNUSABLE',
    sentence,
    next: 'Make one for this node: muster node repair-bundle ID --reason REASON --out FILE',
  })
