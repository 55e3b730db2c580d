// Which revocation lists were written on this host: of each authority the newest, for good. An agent that brings an older one could
// else, once the helper was started anew, make programs forget a revocation.

import * as path from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { isListAhead } from '#agent/programs/check-generation.ts'
import { makeFolder, replaceFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
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
const longestFile = 256 * 1024

const Stored = Type.Object({
  version: Type.Literal(1),
  lists: Type.Record(
    Type.String({ pattern: '^[0-9a-f]{1,128}$' }),
    Type.Object({ number: Type.Number(), thisUpdateMs: Type.Number() }),
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
  return {
    newest: (nowMs) => {
      const fault = faultOfState(folder, trust)
      if (fault !== null) return fault
      if (!pathExists(file)) return new Map()
      const read = readTrustedFile(file, trust, longestFile)
      if ('fault' in read) return refused('CONFIG_INVALID', read.fault)
      const stored = storedIn(read.text)
      if (stored === null)
        return refused('CONFIG_INVALID', `${file} is damaged: remove it, which lets an older list in once`)
      return new Map(Object.entries(stored.lists).filter(([, list]) => !isListAhead(list, nowMs)))
    },
    add: (before, lists) => {
      const isNew = [...lists].some(([authority, { number }]) => before.get(authority)?.number !== number)
      if (!isNew) return null
      const all = new Map([...before, ...lists])
      if (all.size > mostAuthorities)
        return refused('LIST_REFUSED', `${file} has lists of ${mostAuthorities} authorities`)
      replaceFile(file, JSON.stringify({ version: 1, lists: Object.fromEntries(all) }) + '\n', 0o600)
      return null
    },
  }
}

const storedIn = (text: string): { readonly lists: Readonly<Record<string, ListMark>> } | null => {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(Stored, value) ? value : null
  } catch {
    return null
  }
}

type ListMark = { readonly number: number; readonly thisUpdateMs: number }
