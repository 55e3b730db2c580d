// Two agents on one state folder would be two holders of one identity.

import { ownMark, stillRuns } from '#platform/process-mark.ts'
import { readStatusFile } from './status-file.ts'

/** The process that runs an agent on this folder; null when there is none, or it is this one. */
export const holderOf = (stateFolder: string): number | null => {
  const status = readStatusFile(stateFolder)
  if (status === null || status.phase === 'stopped' || status.pid === ownMark().pid) return null
  return stillRuns(status) ? status.pid : null
}
