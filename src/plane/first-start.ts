// A first start makes the whole domain or leaves the data folder as it was. Before it writes anything it leaves a note; the
// note goes when the plane has announced the domain. A start that finds the note knows that keys without a database are
// what an unfinished first start has left, and not a domain that lost its database.

import * as path from 'node:path'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import { isoTime } from '#platform/clock.ts'

const asideFolder = 'set-aside'

const noteFile = (dataFolder: string): string => path.join(dataFolder, 'first-start')

export type FirstStartNote = {
  /** Where the root's key was carried to; null: nowhere, or it has not been made. */
  readonly rootKeyFile: string | null
}

export const readFirstStart = (dataFolder: string): FirstStartNote | null => {
  const text = readFileIfAny(noteFile(dataFolder))
  if (text === null) return null
  const [, rootKeyFile] = text.split('\n')
  return { rootKeyFile: rootKeyFile === undefined || rootKeyFile === '' ? null : rootKeyFile }
}

/** Durable when it returns. */
export const noteFirstStart = (dataFolder: string, { rootKeyFile }: FirstStartNote): void =>
  replaceFile(noteFile(dataFolder), `a first start is not finished\n${rootKeyFile ?? ''}\n`, 0o600)

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

const leftovers = /^(keys|admin\.key|muster\.db.*)$/

/** What an unfinished first start has left goes out of the way, and stays readable. */
export const setLeftoversAside = (dataFolder: string, nowMs: number): string | null => {
  const names = namesIn(dataFolder).filter((name) => leftovers.test(name))
  if (names.length === 0) return null
  const aside = path.join(dataFolder, asideFolder, `unfinished-first-start-${isoTime(nowMs).replaceAll(':', '')}`)
  makeFolder(aside, 0o700)
  for (const name of names) renamePath(path.join(dataFolder, name), path.join(aside, name))
  return aside
}
