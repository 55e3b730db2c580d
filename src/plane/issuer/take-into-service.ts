// A new authority takes the place of the old one. The order matters for a crash at any point: the new key is durable
// before the commit that names it, the old key goes after the commit that retires it. What a crash can leave behind is
// a key file that no serving authority names; such files are harmless, and dropped.

import { readOf, type Change } from '#domain/change.ts'
import type { Attribution } from '#domain/decision.ts'
import type { IssuerRecord } from '#domain/issuer-record.ts'
import type { AuthorityDeps, AuthorityState } from './authority-state.ts'
import { bookOf, type IssuerBook } from './issuer-book.ts'
import { issuerEntry } from './issuer-entries.ts'
import type { CaSigner } from './ca-signer.ts'
import type { KeyCustody } from './key-custody.ts'

/** `made` has its key kept already. After `lost-race` the book has been read again, and nothing else has changed. */
export const takeIntoService = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  made: CaSigner,
  story: { readonly why: string; readonly by: Attribution },
): Promise<'in-service' | 'lost-race'> => {
  const outcome = await deps.store.commit(succession(state.book, made.record, story, deps.clock.nowMs()))
  await readBook(deps, state)
  if (outcome === 'lost-race') return outcome
  deps.feed.publish(outcome)
  if (made.record.role === 'issuing') state.signer = made
  dropOrphans(deps.custody, state.book)
  return 'in-service'
}

export const readBook = async (deps: AuthorityDeps, state: AuthorityState): Promise<void> => {
  state.book = bookOf(await deps.store.issuers())
}

const succession = (
  book: IssuerBook,
  made: IssuerRecord,
  { why, by }: { readonly why: string; readonly by: Attribution },
  nowMs: number,
): Change => {
  const replaced = book.rows.filter(({ value }) => value.retiredAtMs === null && takesThePlaceOf(made, value))
  return {
    reads: [
      readOf('issuer', made.id, null),
      readOf('issuer', made.parent, book.find(made.parent)),
      ...replaced.map((row) => readOf('issuer', row.value.id, row)),
    ],
    writes: [
      { put: 'issuer', value: made },
      ...replaced.map(({ value }) => ({ put: 'issuer', value: { ...value, retiredAtMs: nowMs } }) as const),
    ],
    entries: [
      issuerEntry('ca.rotated', made, by, nowMs, { why, replaces: replaced.map(({ value }) => value.id) }),
      ...replaced.map(({ value }) => issuerEntry('ca.retired', value, by, nowMs, { why, replaced_by: made.id })),
    ],
  }
}

/** With an issuing key in a file there is nothing for a domain CA to do any more. */
const takesThePlaceOf = (made: IssuerRecord, other: IssuerRecord): boolean =>
  other.role === made.role || (made.role === 'issuing' && made.custody === 'file' && other.role === 'domain-ca')

/** Never a root's: losing one for want of a record would be beyond repair. */
export const dropOrphans = (custody: KeyCustody, book: IssuerBook): void => {
  for (const name of custody.names()) {
    if (name.role !== 'issuing' && name.role !== 'domain-ca') continue
    const record = book.find(name.id)?.value
    if (record === undefined || record.retiredAtMs !== null) custody.drop(name)
  }
}
