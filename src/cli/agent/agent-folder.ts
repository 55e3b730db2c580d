// Which agent of this machine a command is about, and what to say to somebody who may not look.

import { defaultStateFolder } from '#agent/core/config.ts'
import { errno } from '#platform/files.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'

export type AgentFolderOptions = { readonly state?: string }

export const agentFolder = (cli: Cli, { state }: AgentFolderOptions): string =>
  state ?? cli.env['MUSTER_AGENT_STATE'] ?? cli.env['STATE_DIRECTORY'] ?? defaultStateFolder

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
