// A first start makes the whole domain or leaves the data folder as it was. Before it writes anything it leaves a note; the
// note goes when the plane has announced the domain. A start that finds the note knows that keys without a database are
// what an unfinished first start has left, and not a domain that lost its database.

import * as path from 'node:path'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import { isoTime } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'

const asideFolder = 'set-aside'

const noteFile = (dataFolder: string): string => path.join(dataFolder, 'first-start')

export type FirstStartNote = {
  /** Where the root's key was carried to; null: nowhere, or it has not been made. */
  readonly rootKeyFile: string | null
  /** The id of the root that was made; null: none was, or not that far. A store that has it is that of this domain. */
  readonly root: string | null
}

export const readFirstStart = (dataFolder: string): FirstStartNote | null => {
  const text = readFileIfAny(noteFile(dataFolder))
  if (text === null) return null
  const [, rootKeyFile = '', root = ''] = text.split('\n')
  return { rootKeyFile: rootKeyFile === '' ? null : rootKeyFile, root: root === '' ? null : root }
}

/** Durable when it returns. */
export const noteFirstStart = (dataFolder: string, { rootKeyFile, root }: FirstStartNote): void =>
  replaceFile(noteFile(dataFolder), `a first start is not finished\n${rootKeyFile ?? ''}\n${root ?? ''}\n`, 0o600)

export const endFirstStart = (dataFolder: string): void => {
  if (pathExists(noteFile(dataFolder))) removeFile(noteFile(dataFolder))
}

/** Returns how to take back everything that appears in the folder from now on. Only for who has the folder for itself. */
export const watchFolder = (dataFolder: string): (() => void) => {
  const before = new Set(namesIn(dataFolder))
  return () => {
    for (const name of namesIn(dataFolder)) {
      if (!before.has(name) && name !== asideFolder) removeFolder(path.join(dataFolder, name))
    }
  }
}

/** All that names or serves the domain that was not finished. One of them left beside a new domain would be taken for its own. */
const leftovers =
  /^(keys|cut-offs|muster\.reserve|(admin\.key|muster\.db|plane\.domain|journal-heads\.json|store-doubt\.json).*)$/

/**
 * What an unfinished first start has left goes out of the way, and stays readable. Only with the note written, so that a
 * start that ends in the middle of this is continued by the next one; and only for who has the folder, or the turn to make
 * the domain, for itself.
 */
export const setLeftoversAside = (dataFolder: string, nowMs: number, log: Log): void => {
  const names = namesIn(dataFolder).filter((name) => leftovers.test(name))
  if (names.length > 0)
    moveAside(dataFolder, names, nowMs, log, 'what an unfinished first start has left was set aside')
}

/** Another plane has made the domain of the database: the administrator's key that was made here opens nothing. */
export const setAdminKeyAside = (dataFolder: string, nowMs: number, log: Log): void => {
  const names = namesIn(dataFolder).filter((name) => name === 'admin.key')
  const why =
    'another plane has made this domain: the administrator key of the unfinished first start here does not belong to it and was set aside'
  if (names.length > 0) moveAside(dataFolder, names, nowMs, log, why)
}

const moveAside = (dataFolder: string, names: readonly string[], nowMs: number, log: Log, why: string): void => {
  const folder = path.join(dataFolder, asideFolder, `unfinished-first-start-${isoTime(nowMs).replaceAll(':', '')}`)
  makeFolder(folder, 0o700)
  for (const name of names) renamePath(path.join(dataFolder, name), path.join(folder, name))
  log.warn({ folder, files: names }, why)
}
