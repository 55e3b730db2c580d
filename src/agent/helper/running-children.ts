// Which services are children of this helper, for the helper after it: a helper that is killed leaves them behind, and they would run
// beside those that the next one starts, listed or not. Of no use after a reboot, so it is not flushed.

import * as path from 'node:path'
import { Type } from 'typebox'
import type { Log } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'
import { ownMark, stillRuns, type ProcessMark } from '#platform/process-mark.ts'
import { readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { replaceUnflushed } from '#platform/unflushed-file.ts'
import { matchesSchema } from '#platform/json-schema.ts'

export type RunningChildren = {
  /** Never throws: a full disk stops no service. */
  note(children: readonly ProcessMark[]): void
  /** Those of a helper that is gone, as far as they still run. */
  left(): readonly ProcessMark[]
}

const Mark = Type.Object({
  pid: Type.Integer({ minimum: 2 }),
  birth: Type.Union([Type.String({ maxLength: 128 }), Type.Null()]),
})
const Stored = Type.Object({ version: Type.Literal(1), by: Mark, children: Type.Array(Mark) })

const longestFile = 64 * 1024
/** Room for as many as there usually are, so that it can be written over on a full disk. */
const fileBytes = 8 * 1024

/** `folder`: the state of the helper, which only its user can change. */
export const openRunningChildren = (
  folder: string,
  trust: Trust,
  log: Log,
  by: ProcessMark = ownMark(),
): RunningChildren => {
  const file = path.join(folder, 'children.json')
  return {
    note: (children) => {
      try {
        replaceUnflushed(file, JSON.stringify({ version: 1, by, children }), 0o600, fileBytes)
      } catch (error) {
        log.warn({ err: error }, 'the list of running services could not be written')
      }
    },
    left: () => {
      if (!pathExists(file)) return []
      const read = readTrustedFile(file, trust, longestFile)
      const stored = 'fault' in read ? null : storedIn(read.text)
      if (stored === null) {
        log.warn({ file }, 'services of a helper before this one may still run: the list of them cannot be read')
        return []
      }
      // Started by mistake beside another one: that one has them.
      if (stillRuns(stored.by)) return []
      return stored.children.filter((mark) => mark.birth !== null && stillRuns(mark))
    },
  }
}

const storedIn = (text: string): { readonly by: ProcessMark; readonly children: readonly ProcessMark[] } | null => {
  try {
    const value: unknown = JSON.parse(text)
    return matchesSchema(Stored, value) ? value : null
  } catch {
    return null
  }
}
