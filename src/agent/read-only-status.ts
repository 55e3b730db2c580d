// A disk that is read-only keeps the agent from writing down that it is. Whoever reads its status sees that for himself.

import { diskSpace, writeFaultOf } from '#platform/disk-space.ts'
import { diskTrouble } from './disk-trouble.ts'
import { readStatusFile, type StatusFile } from './status-file.ts'

/** As `readStatusFile`, with the trouble the agent cannot tell of. */
export const readStatus = (stateFolder: string): StatusFile | null => {
  const status = readStatusFile(stateFolder)
  if (status === null || status.troubles.some(({ place }) => place === 'storage')) return status
  // Of the other faults the reader would see his own: he may not be the user of the agent.
  if (writeFaultOf(stateFolder) !== 'EROFS') return status
  const facts = { errno: 'EROFS', path: stateFolder, freeBytes: diskSpace(stateFolder)?.availableBytes ?? 0 }
  const what = diskTrouble(facts, 'What is told here is what the agent could write last')
  const seen = { ...what, place: 'storage' as const, since: status.written_at, attempts: 1, next_try_at: null }
  return { ...status, troubles: [...status.troubles, seen] }
}
