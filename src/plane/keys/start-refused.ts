// Why a plane does not start on what it finds, before it has changed anything there. Trying again changes nothing: a
// person has to put something back, so the exit code is 78 and a supervisor stops restarting it.

import { mayBeReadBy } from '#platform/files.ts'
import * as path from 'node:path'
import { credentialName, type FoundSealingKey } from './sealing-key.ts'

export type StartRefusedCode =
  /** Something of a domain is here, and the database or a file it cannot do without is not. */
  | 'DATA_FOLDER_INCOMPLETE'
  /** The parts that are here belong to different domains. */
  | 'DATA_FOLDER_MIXED'
  | 'KEY_MISSING'
  | 'SEALING_KEY_EXPOSED'

export class StartRefused extends Error {
  readonly code: StartRefusedCode
  /** What the operator does about it. */
  readonly next: string

  constructor(code: StartRefusedCode, message: string, next: string) {
    super(message)
    this.name = 'StartRefused'
    this.code = code
    this.next = next
  }
}

/**
 * As ssh does with its keys. The generated key is of no use to a group either; one that was named may belong to root and a
 * group of the plane's user (0640), which is reported as unprotected. systemd guards its credentials itself.
 */
export const refuseExposed = (
  { file }: Pick<FoundSealingKey, 'file'>,
  dataFolder: string,
  credentialsFolder: string | null,
): void => {
  if (credentialsFolder !== null && file === path.join(credentialsFolder, credentialName)) return
  const isOwn = path.resolve(file) === path.resolve(dataFolder, 'seal.key')
  const exposedTo = mayBeReadBy(file, 'everybody')
    ? 'everybody'
    : isOwn && mayBeReadBy(file, 'group')
      ? 'its group'
      : null
  if (exposedTo === null) return
  throw new StartRefused(
    'SEALING_KEY_EXPOSED',
    `the sealing key ${file} can be read by ${exposedTo} on this machine`,
    `chmod 600 ${file}; if others could read it for long, they may have the keys of this domain: docs/OPERATIONS.md, A sealing key that others could read`,
  )
}
