// A cursor is a place in a chain that means nothing to whoever carries it.

import type { Cursor } from './store.ts'

export const cursorOf = (chain: string, sequence: number): Cursor =>
  Buffer.from(`${chain}:${sequence}`, 'utf8').toString('base64url') as Cursor

/** Null: it is not a cursor. Callers that take one from outside ask before they use it. */
export const readCursor = (text: string): { readonly chain: string; readonly sequence: number } | null => {
  if (!/^[A-Za-z0-9_-]{4,120}$/.test(text)) return null
  const match = /^([0-9A-Za-z]{1,64}):(0|[1-9]\d{0,14})$/.exec(Buffer.from(text, 'base64url').toString('utf8'))
  return match === null ? null : { chain: match[1] as string, sequence: Number(match[2]) }
}

export const isCursor = (text: string): text is Cursor => readCursor(text) !== null
