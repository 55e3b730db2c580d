// The CA certificates of the runtime that are in the store, as one value: who signs now, and the way from each up to the root.
// The roots of recovery and of programs are not among them: nothing of the runtime may be signed by one, nor lead to one.

import { type Row, entry, type Attribution } from '#domain/core/change.ts'
import { isKept, isOfRuntime, type IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
import { fingerprint } from '#pki/certificate.ts'
import { isoTime } from '#platform/clock.ts'

export type IssuerBook = {
  readonly rows: readonly Row<IssuerRow>[]
  /** The newest; nodes are given all of them. */
  readonly root: IssuerRow
  /** Newest first. */
  readonly roots: readonly IssuerRow[]
  /** The newest that still serves, or null. */
  readonly domainCa: IssuerRow | null
  /** One with a key that is kept comes before those in the memory of some plane. */
  readonly issuing: IssuerRow | null
  /** The latest first; also those that have ended. */
  readonly withdrawn: readonly IssuerRow[]
  find(id: IssuerId): Row<IssuerRow> | null
  /** An issuer not in the store is a bug of the caller. */
  pathOf(id: IssuerId): Path
}

/** From an issuer upwards. */
export type Path = {
  /** DER, without the root. */
  readonly intermediates: readonly Uint8Array[]
  readonly root: IssuerRow
}

export const bookOf = (all: readonly Row<IssuerRow>[]): IssuerBook => {
  const rows = all.filter(({ value }) => isOfRuntime(value))
  const byId = new Map(rows.map((row) => [row.value.id, row]))
  const newestFirst = rows.map((row) => row.value).sort((a, b) => b.notBeforeMs - a.notBeforeMs)
  const serving = (role: IssuerRow['role']): IssuerRow[] =>
    newestFirst.filter((row) => row.role === role && row.retiredAtMs === null)
  const roots = serving('root')
  const [root] = roots
  if (root === undefined) throw new Error('there is no root in the store: this domain has no certificate authority yet')
  const paths = new Map(newestFirst.map((row) => [row.id, pathFrom(row, byId)]))

  return {
    rows,
    root,
    roots,
    domainCa: serving('domain-ca')[0] ?? null,
    issuing: serving('issuing').find(isKept) ?? serving('issuing')[0] ?? null,
    withdrawn: rows
      .map(({ value }) => value)
      .filter(({ compromisedAtMs }) => compromisedAtMs !== null)
      .sort((a, b) => (b.compromisedAtMs ?? 0) - (a.compromisedAtMs ?? 0)),
    find: (id) => byId.get(id) ?? null,
    pathOf(id) {
      const path = paths.get(id)
      if (path === undefined) throw new Error(`issuer ${id} is not in the store`)
      return path
    },
  }
}

const pathFrom = (issuer: IssuerRow, byId: ReadonlyMap<IssuerId, Row<IssuerRow>>): Path => {
  const intermediates: Uint8Array[] = []
  let row = issuer
  while (row.role !== 'root') {
    intermediates.push(Buffer.from(row.der, 'base64'))
    const above = byId.get(row.parent)
    // A domain CA and an issuer below it are the most there can be; more would be a circle.
    if (above === undefined || intermediates.length > 2)
      throw new Error(`no root above issuer ${issuer.id} is in the store`)
    row = above.value
  }
  return { intermediates, root: row }
}

/** The actor of actions that no operator ordered. */
export const authorityActor: Attribution = { actor: 'system:authority', source: null, correlation: null }

/** What the journal says of the life of a certificate authority. */
export const issuerEntry = (
  type: 'ca.created' | 'ca.rotated' | 'ca.retired' | 'ca.compromised',
  row: IssuerRow,
  by: Attribution,
  nowMs: number,
  more: EntryBody,
): EntryDraft =>
  entry(
    by,
    nowMs,
    type,
    { issuer: row.id },
    {
      role: row.role,
      custody: row.custody,
      parent: row.parent,
      fingerprint: `SHA256:${fingerprint(Buffer.from(row.der, 'base64'))}`,
      not_after: isoTime(row.notAfterMs),
      ...more,
    },
  )
