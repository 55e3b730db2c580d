// How a scheduler learns where it may place work: first all nodes, then those with new journal entries, each in its state of that
// moment. A node that is sent twice does no harm; none is missed between the list and the watch, because the place in the
// journal is taken before the first node is read.

import type { Node, NodeId } from '#domain/core/node.ts'
import { refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isSchedulingNews, mayHaveLeft } from '#domain/fleet/scheduling.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import { cursorAt, readCursor, isCursor } from '#plane/store/journal/journal-cursor.ts'
import type { Cursor, Store, StoredEntry } from '#plane/store/contract/store.ts'
import { unfitText } from '#wire/core/strict-json.ts'

type NodesAndJournal = Pick<Store, 'get' | 'nodes' | 'journal'>

export type SchedulingPage = {
  readonly kind: 'page'
  readonly nodes: readonly Node[]
  readonly next: SchedulingPlace
  /** There is more to read at once. */
  readonly more: boolean
}

export type SchedulingQuery = {
  readonly vcluster: string | null
  /** Null: from the beginning. */
  readonly at: SchedulingPlace | null
  readonly limit: number
  readonly waitMs: number
}

export const watchScheduling = async (
  store: NodesAndJournal,
  arrivals: Arrivals,
  query: SchedulingQuery,
): Promise<SchedulingPage | Refusal> => {
  const { at } = query
  if (at === null) return listed(store, query, null, await journalNow(store))
  if (at.kind === 'listing') return listed(store, query, at.behind, at.since)
  if (query.waitMs === 0) return changed(store, query, at.since)
  const arrival = arrivals.expect(isSchedulingNews)
  if (arrival.kind === 'refused') return arrival
  try {
    const now = await changed(store, query, at.since)
    if (now.kind === 'refused' || now.nodes.length > 0 || now.more) return now
    await arrival.within(query.waitMs)
    return await changed(store, query, at.since)
  } finally {
    arrival.cancel()
  }
}

const journalNow = async (store: NodesAndJournal): Promise<Cursor> => {
  const heads = await store.journal.heads()
  // The creation of the domain is in it before the first call.
  if (heads.length === 0) throw new Error('the journal is empty')
  return cursorAt(new Map(heads.map(({ chain, sequence }) => [chain, sequence])))
}

const listed = async (
  store: NodesAndJournal,
  { vcluster, limit }: SchedulingQuery,
  after: NodeId | null,
  since: Cursor,
): Promise<SchedulingPage> => {
  const rows = await store.nodes({ membership: null, profile: null, vcluster, after, limit })
  const last = rows.at(-1)
  const more = rows.length === limit && last !== undefined
  const next: SchedulingPlace = more ? { kind: 'listing', behind: last.value.id, since } : { kind: 'watching', since }
  return { kind: 'page', nodes: rows.map(({ value }) => value).filter(isKnown), next, more }
}

/** A revoked node is a change for a watch, and is left out of a new list. */
const isKnown = ({ membership }: Node): boolean => membership.kind !== 'revoked'

const changed = async (
  store: NodesAndJournal,
  { vcluster, limit }: SchedulingQuery,
  since: Cursor,
): Promise<SchedulingPage | Refusal> => {
  const entries = (await hasPlace(store.journal, since))
    ? await store.journal.read({ after: since, last: null, limit, node: null, type: null })
    : null
  if (entries === null)
    return refuseField('REQUEST_INVALID', 'after', 'this journal has no such place: begin anew, without after')
  const changed: Node[] = []
  for (const [id, left] of concerned(entries)) {
    const node = await store.get('node', id)
    if (node !== null && (vcluster === null || left || node.value.assignment === vcluster)) changed.push(node.value)
  }
  const next = { kind: 'watching', since: entries.at(-1)?.cursor ?? since } as const
  return { kind: 'page', nodes: changed, next, more: entries.length === limit }
}

/** Of another domain, or of a store that has been put back since: a wait from there would never end. */
const hasPlace = async (journal: Store['journal'], since: Cursor): Promise<boolean> => {
  const hashes = [...(readCursor(since) ?? [])].map(([chain, sequence]) => journal.hashAt(chain, sequence))
  return (await Promise.all(hashes)).every((hash) => hash !== null)
}

/** Each once, however much was said of it, and whether it may have left its vCluster. */
const concerned = (entries: readonly StoredEntry[]): ReadonlyMap<NodeId, boolean> => {
  const nodes = new Map<NodeId, boolean>()
  for (const { entry } of entries) {
    if (entry.node === null || !isSchedulingNews(entry)) continue
    nodes.set(entry.node, (nodes.get(entry.node) ?? false) || mayHaveLeft(entry))
  }
  return nodes
}

// The position of a scheduler: in the list of all nodes, or behind a place of the journal. Both carry the place where the list
// began, from which its watch goes on: changes while the list is read come after it.

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
