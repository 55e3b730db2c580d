// Where a scheduler is: somewhere in the list of all nodes, or behind a place of the journal. Both carry the place where
// the list was begun, from which its watch goes on: what changes while the list is read is told after it.

import type { NodeId } from '#domain/core/node.ts'
import { isCursor } from '#plane/store/journal/journal-cursor.ts'
import type { Cursor } from '#plane/store/contract/store.ts'
import { unfitText } from '#wire/core/strict-json.ts'

export type SchedulingPlace =
  | { readonly kind: 'listing'; readonly behind: NodeId; readonly since: Cursor }
  | { readonly kind: 'watching'; readonly since: Cursor }

export const placeText = (place: SchedulingPlace): string =>
  place.kind === 'watching'
    ? `w.${place.since}`
    : `l.${place.since}.${Buffer.from(place.behind, 'utf8').toString('base64url')}`

/** Null: it is not one of ours. */
export const readPlace = (text: string): SchedulingPlace | null => {
  const [kind, since, behind, ...rest] = text.split('.')
  if (since === undefined || !isCursor(since) || rest.length > 0) return null
  if (kind === 'w' && behind === undefined) return { kind: 'watching', since }
  if (kind !== 'l' || behind === undefined || !/^[A-Za-z0-9_-]{1,400}$/.test(behind)) return null
  const node = Buffer.from(behind, 'base64url').toString('utf8')
  return unfitText(node) === null ? { kind: 'listing', behind: node, since } : null
}
