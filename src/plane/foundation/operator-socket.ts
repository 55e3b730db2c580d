// Where the operator listener's socket is. Replicas over one store may share a data folder: the first has the name that
// commands look for, the others have names of their own.

import * as path from 'node:path'
import { socketAnswers } from '#platform/http-server.ts'
import { readFileIfAny } from '#platform/files.ts'
import { inUse } from '#plane/store/sqlite/data-folder-lock.ts'
import { lockFolder } from '#platform/sqlite-lock.ts'

export type OperatorSocket = {
  /** Null: there is no name left. */
  readonly file: string | null
  release(): void
}

const mostSockets = 64

/** No other process uses this data folder. */
export const soleSocket = (dataFolder: string): OperatorSocket => ({
  file: socketFile(dataFolder, 1),
  release: () => {},
})

/** Throws if a plane answers on the socket of this folder, also without a lock. Nothing is opened or made. */
export const refuseRunningPlane = async (dataFolder: string): Promise<void> => {
  if (await socketAnswers(socketFile(dataFolder, 1)))
    throw inUse(dataFolder, readFileIfAny(path.join(dataFolder, 'plane.pid')))
}

/** Held until it is released, or this process ends. */
export const takeSocket = (dataFolder: string): OperatorSocket => {
  for (let number = 1; number <= mostSockets; number++) {
    const file = socketFile(dataFolder, number)
    const lock = lockFolder(path.dirname(file), `${path.basename(file, '.sock')}.lock`)
    if (typeof lock === 'object') return { file, release: () => lock.release() }
    if (lock === 'impossible') break
  }
  return { file: null, release: () => {} }
}

const socketFile = (dataFolder: string, number: number): string =>
  path.join(dataFolder, 'run', number === 1 ? 'operator.sock' : `operator-${number}.sock`)
