// Which revocation lists were written on this host: of each authority the newest, for good. An agent that brings an older one could
// else, once the helper was started anew, make programs forget a revocation.

import * as path from 'node:path'
import { Type } from 'typebox'
import { isListAhead } from '#agent/programs/check-generation.ts'
import { makeFolder, replaceFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { matchesSchema, recordOf } from '#platform/json-schema.ts'
import type { NewestLists } from './check-output.ts'
import { refused, type Refused } from './verbs.ts'

export const defaultHelperState = '/var/lib/muster-agent-helper'

export type WrittenLists = {
  /** Without those from the future: a clock was ahead when they were written, and their numbers would keep right ones out. */
  newest(nowMs: number): NewestLists | Refused
  /** Durable when it returns. Throws what the disk throws. `before`: what `newest` said. */
  add(before: NewestLists, lists: NewestLists): Refused | null
}

/** Only authorities below a pinned root get here: a domain makes a few in its life. */
const mostAuthorities = 1024
const longestFile = 1024 * 1024

/**
 * Of each authority the highest number ever and the one written last: they differ where a clock was wrong at one of the two, and
 * which one that was is not known before the clock is right.
 */
const Stored = Type.Object({
  version: Type.Literal(1),
  lists: recordOf(
    Type.String({ pattern: '^[0-9a-f]{1,128}$' }),
    Type.Array(Type.Object({ number: Type.Number(), thisUpdateMs: Type.Number() }), { minItems: 1, maxItems: 2 }),
  ),
})

/** Makes the folder where there is none. Refused where it cannot be made, or could be changed by others. */
export const faultOfState = (folder: string, trust: Trust): Refused | null => {
  try {
    makeFolder(folder, 0o700)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return refused('PATH_UNSAFE', `The helper cannot keep its state in ${folder} (${why}): use --state DIR`)
  }
  const fault = faultOfPath(folder, trust, { kind: 'folder', links: 'followed' })
  return fault === null ? null : refused('PATH_UNSAFE', `The helper cannot keep its state in ${folder}: ${fault}`)
}

export const openWrittenLists = (folder: string, trust: Trust): WrittenLists => {
  const file = path.join(folder, 'lists.json')
  const marks = (): ReadonlyMap<string, readonly ListMark[]> | Refused => {
    if (!pathExists(file)) return new Map()
    const read = readTrustedFile(file, trust, longestFile)
    if ('fault' in read) return refused('CONFIG_INVALID', read.fault)
    const stored = storedIn(read.text)
    return stored === null
      ? refused('CONFIG_INVALID', `${file} is damaged: remove it, which lets an older list in once`)
      : new Map(Object.entries(stored.lists))
  }
  return {
    newest: (nowMs) => {
      const fault = faultOfState(folder, trust)
      if (fault !== null) return fault
      const written = marks()
      if ('code' in written) return written
      const newest = new Map<string, ListMark>()
      for (const [authority, ofIt] of written) {
        const mark = highest(ofIt.filter((one) => !isListAhead(one, nowMs)))
        if (mark !== null) newest.set(authority, mark)
      }
      return newest
    },
    add: (before, lists) => {
      const isNew = [...lists].some(([authority, { number }]) => before.get(authority)?.number !== number)
      if (!isNew) return null
      const written = marks()
      if ('code' in written) return written
      const all = new Map(written)
      for (const [authority, last] of lists) {
        const most = highest([...(written.get(authority) ?? []), last]) ?? last
        all.set(authority, most === last ? [last] : [most, last])
      }
      if (all.size > mostAuthorities)
        return refused('LIST_REFUSED', `${file} has lists of ${mostAuthorities} authorities`)
      replaceFile(file, JSON.stringify({ version: 1, lists: Object.fromEntries(all) }) + '\n', 0o600)
      return null
    },
  }
}

const highest = (marks: readonly ListMark[]): ListMark | null =>
  marks.reduce<ListMark | null>((most, one) => (most === null || one.number > most.number ? one : most), null)

const storedIn = (text: string): { readonly lists: Readonly<Record<string, readonly ListMark[]>> } | null => {
  try {
    const value: unknown = JSON.parse(text)
    return matchesSchema(Stored, value) ? value : null
  } catch {
    return null
  }
}

type ListMark = { readonly number: number; readonly thisUpdateMs: number }
