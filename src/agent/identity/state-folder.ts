// The state folder is taken before anything in it is read. Two agents on one would be two holders of one identity, and a
// folder that others may write in would hand them the keys.

import { flockFolder } from '#platform/flock.ts'
import { faultOfPrivateFolder } from '#platform/private-folder.ts'
import { ownMark, stillRuns } from '#platform/process-mark.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { trouble, type Trouble } from '#agent/core/trouble.ts'

export type TakenFolder =
  { readonly kind: 'ours'; release(): void } | { readonly kind: 'not-ours'; readonly trouble: Trouble }

export const takeStateFolder = (folder: string): TakenFolder => {
  const fault = faultOfPrivateFolder(folder)
  if (fault !== null) {
    const next = `Give --state a folder of its own; or, if it is this agent's: chown it to its user and chmod 700 ${folder}`
    return notOurs('state_folder_unsafe', `The state folder ${folder} ${fault}.`, next)
  }
  const lock = flockFolder(folder, 'agent.lock')
  if (lock === 'no-program') {
    return notOurs(
      'flock_missing',
      'This machine has no program flock to lock the state folder with.',
      'Install util-linux',
    )
  }
  // It also finds an agent of a release before 0.5, whose lock is another.
  const holder = holderOf(folder)
  if (lock === 'taken' || holder !== null) {
    if (typeof lock === 'object') lock.release()
    const who = holder === null ? '' : ` (process ${holder})`
    return notOurs(
      'state_in_use',
      `Another agent${who} runs on ${folder}.`,
      'Stop it first, or give this one another --state',
    )
  }
  // Where nothing can be locked nothing can be kept either, and the agent says so when it tries.
  return { kind: 'ours', release: () => void (typeof lock === 'object' && lock.release()) }
}

/** The process that runs an agent on this folder; null when there is none, or it is this one. */
const holderOf = (folder: string): number | null => {
  const status = readStatusFile(folder)
  if (status === null || status.phase === 'stopped' || status.pid === ownMark().pid) return null
  return stillRuns(status) ? status.pid : null
}

const notOurs = (code: string, text: string, next: string): TakenFolder => ({
  kind: 'not-ours',
  trouble: trouble(code, text, next),
})
