// A cursor is a place in every chain, opaque to its user. A chain that it does not name is read from its beginning, so that
// entries of a new replica are never skipped.

import type { Cursor } from '#plane/store/contract/store.ts'

/** The newest sequence that was read, by chain. */
export type Places = ReadonlyMap<string, number>

export const cursorAt = (places: Places): Cursor =>
  Buffer.from(
    [...places]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([chain, sequence]) => `${chain}:${sequence}`)
      .join(','),
    'utf8',
  ).toString('base64url') as Cursor

export const cursorOf = (chain: string, sequence: number): Cursor => cursorAt(new Map([[chain, sequence]]))

/** Room for a hundred chains, and still short enough for the line of a request. */
export const longestCursor = 8000

/** Null: it is not a cursor. Callers that take one from outside ask before they use it. */
export const readCursor = (text: string): Places | null => {
  if (text.length > longestCursor || !/^[A-Za-z0-9_-]{4,}$/.test(text)) return null
  const places = new Map<string, number>()
  for (const place of Buffer.from(text, 'base64url').toString('utf8').split(',')) {
    const match = /^([0-9A-Za-z]{1,64}):(0|[1-9]\d{0,14})$/.exec(place)
    const chain = match?.[1]
    if (chain === undefined || places.has(chain)) return null
    places.set(chain, Number(match?.[2]))
  }
  return places
}

export const isCursor = (text: string): text is Cursor => readCursor(text) !== null
