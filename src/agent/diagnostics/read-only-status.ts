// A disk that is read-only keeps the agent from writing down that it is. Whoever reads its status sees that for himself.

import { diskSpace, writeFaultOf } from '#platform/disk-space.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { diskTrouble } from '#agent/state/disk-trouble.ts'
import { readStatusFile, type StatusFile } from './status-file.ts'

/** As `readStatusFile`, with the trouble the agent cannot tell of. */
export const readStatus = (stateFolder: string): StatusFile | null => {
  const status = readStatusFile(stateFolder)
  if (status === null) return null
  const told = status.troubles.find(({ place }) => place === 'storage')
  // It has said so itself, and goes on saying what it does.
  if (told !== undefined && status.phase !== 'stopped' && stillRuns(status)) return status
  // Of the other faults the reader would see his own: he may not be the user of the agent.
  if (writeFaultOf(stateFolder) !== 'EROFS') return status
  const facts = { errno: 'EROFS', path: stateFolder, freeBytes: diskSpace(stateFolder)?.availableBytes ?? 0 }
  const what = diskTrouble(facts, 'What is told here is what an agent could write last, and one may run all the same')
  const since = told?.since ?? status.written_at
  const seen = { ...what, place: 'storage' as const, since, attempts: told?.attempts ?? 1, next_try_at: null }
  return { ...status, troubles: [...status.troubles.filter((other) => other !== told), seen] }
}
