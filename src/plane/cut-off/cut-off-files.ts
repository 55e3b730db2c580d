// Orders that wait for the store, one file each in the data folder, so that a restart repeats them. The folder holds the
// keys of the plane: no other user can write there, so a file in it counts as an order.

import * as path from 'node:path'
import { cutOffKey } from '#domain/core/cut-off.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import type { Log } from '#platform/log.ts'
import type { PendingCutOff } from './pending-cut-offs.ts'

export type CutOffFiles = {
  /** Durable when it returns `data folder`; `memory`: that disk takes nothing either. */
  keep(key: string, pending: PendingCutOff): 'data folder' | 'memory'
  drop(key: string): void
  all(): readonly PendingCutOff[]
}

const format = 'muster-cut-off-1'
const nameShape = /^[0-9a-f]{32}\.json$/

export const openCutOffFiles = (dataFolder: string, log: Log): CutOffFiles => {
  const folder = path.join(dataFolder, 'cut-offs')
  const fileOf = (key: string): string => path.join(folder, `${sha256Hex(key).slice(0, 32)}.json`)
  return {
    keep(key, pending) {
      try {
        makeFolder(folder, 0o700)
        replaceFile(fileOf(key), JSON.stringify({ format, ...pending }), 0o600)
        return 'data folder'
      } catch (error) {
        log.error({ err: error, cutOff: key }, 'a pending cut-off is kept in memory only')
        return 'memory'
      }
    },
    drop(key) {
      try {
        if (readFileIfAny(fileOf(key)) !== null) removeFile(fileOf(key))
      } catch (error) {
        // Repeated after a restart, it finds that it has happened.
        log.warn({ err: error, cutOff: key }, 'the file of a cut-off that is committed could not be removed')
      }
    },
    all() {
      return namesIn(folder).flatMap((name) => {
        if (!nameShape.test(name)) return []
        const file = path.join(folder, name)
        const read = parse(readFileIfAny(file) ?? '')
        if (read === null) log.error({ file }, 'this is no pending cut-off: it is left where it is')
        return read ?? []
      })
    },
  }
}

const parse = (text: string): PendingCutOff | null => {
  try {
    const { format: found, ...pending } = JSON.parse(text) as PendingCutOff & { readonly format?: unknown }
    // Throws for what has no order in it.
    return found === format && Array.isArray(pending.denials) && cutOffKey(pending.order).length > 0 ? pending : null
  } catch {
    return null
  }
}
