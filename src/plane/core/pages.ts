// Lists of any length, read page by page. A walk is no snapshot: it finds rows that are written behind the place it has
// read up to, and no changes before that place.

import { certificateKey, type CertificateRow } from '#domain/core/certificate.ts'
import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type {
  CertificatePlace,
  JournalQuery,
  JournalReader,
  ListQuery,
  NodeQuery,
  Store,
  StoredEntry,
} from '#plane/store/contract/store.ts'
import { turn, type Timers } from '#platform/timers.ts'

export type PageReading<T, Place> = {
  /** Rows that are asked for at once; a page with fewer is the last. */
  readonly limit: number
  /** The rows behind `after`; null: the first. */
  read(after: Place | null, limit: number): Promise<readonly T[]>
  placeOf(last: T): Place
  /** Where to begin; left out: at the first. */
  readonly from?: Place
  /** Reads end in the turn they are asked in. With timers, other work gets a turn between two pages. */
  readonly timers?: Pick<Timers, 'soon'>
}

/** Pages that have rows. */
export async function* pages<T, Place>(reading: PageReading<T, Place>): AsyncGenerator<readonly T[], void, void> {
  for (let after: Place | null = reading.from ?? null; ;) {
    const page: readonly T[] = await reading.read(after, reading.limit)
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    if (page.length < reading.limit) return
    after = reading.placeOf(last)
    if (reading.timers !== undefined) await turn(reading.timers)
  }
}

type WalkOptions = { readonly limit?: number; readonly timers?: Pick<Timers, 'soon'> }

const usualLimit = 500

type NodeWalk = WalkOptions &
  Partial<Pick<NodeQuery, 'membership' | 'profile' | 'vcluster'>> & {
    /** Nodes behind this id. */
    readonly from?: string
  }

/** In the order of their ids. */
export const nodePages = (
  store: Pick<Store, 'nodes'>,
  { limit = usualLimit, timers, from, ...only }: NodeWalk = {},
): AsyncGenerator<readonly Row<Node>[], void, void> =>
  pages({
    limit,
    read: (after: string | null) => store.nodes({ membership: null, profile: null, ...only, after, limit }),
    placeOf: ({ value }) => value.id,
    ...(from === undefined ? {} : { from }),
    ...(timers === undefined ? {} : { timers }),
  })

export async function* everyNode(...walk: Parameters<typeof nodePages>): AsyncGenerator<Node, void, void> {
  for await (const page of nodePages(...walk)) for (const { value } of page) yield value
}

type RowWalk = WalkOptions & {
  readonly where?: NonNullable<ListQuery['where']>
  /** A column that sorts them; `keyOf` is then its value. */
  readonly order?: string
}

/** Rows of one kind, in the order of their keys. `keyOf` has to be the key the store has them by. */
export const rowPages = <K extends RowKind>(
  store: Pick<Store, 'list'>,
  kind: K,
  keyOf: (value: RowTypes[K]) => string,
  { limit = usualLimit, timers, ...only }: RowWalk = {},
): AsyncGenerator<readonly Row<RowTypes[K]>[], void, void> =>
  pages({
    limit,
    read: (after: string | null) => store.list(kind, { ...only, after, limit }),
    placeOf: ({ value }) => keyOf(value),
    ...(timers === undefined ? {} : { timers }),
  })

export async function* everyRow<K extends RowKind>(
  store: Pick<Store, 'list'>,
  kind: K,
  keyOf: (value: RowTypes[K]) => string,
  walk: RowWalk = {},
): AsyncGenerator<RowTypes[K], void, void> {
  for await (const page of rowPages(store, kind, keyOf, walk)) for (const { value } of page) yield value
}

/** Of one node and not of its programs, in the order of issuer and serial, which says nothing about their age. */
export const certificatesOf = (store: Pick<Store, 'list'>, node: NodeId): AsyncGenerator<CertificateRow, void, void> =>
  everyRow(store, 'certificate', ({ issuer, serial }) => certificateKey(issuer, serial), { where: { node } })

/** Certificates that end later, the last to end first; other work gets a turn between two pages. */
export const unexpiredPages = (
  store: Pick<Store, 'unexpiredCertificates'>,
  nowMs: number,
  timers: Pick<Timers, 'soon'>,
): AsyncGenerator<readonly Row<CertificateRow>[], void, void> =>
  pages({
    limit: usualLimit,
    timers,
    read: (before: CertificatePlace | null, limit) => store.unexpiredCertificates({ afterMs: nowMs, before, limit }),
    placeOf: ({ value }) => ({ notAfterMs: value.notAfterMs, key: certificateKey(value.issuer, value.serial) }),
  })

/** Entries of the journal, oldest first. */
export const entryPages = (
  journal: Pick<JournalReader, 'read'>,
  type: JournalQuery['type'],
  limit = usualLimit,
): AsyncGenerator<readonly StoredEntry[], void, void> =>
  pages({
    limit,
    read: (after: StoredEntry['cursor'] | null) => journal.read({ after, last: null, limit, node: null, type }),
    placeOf: ({ cursor }) => cursor,
  })
