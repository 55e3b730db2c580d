// A new authority takes the place of the old one. The order matters for a crash at any point: the new key is durable
// before the commit that names it, the old key goes after the commit that retires it. What a crash can leave behind is
// a key that no serving authority names; such keys are harmless, and leave service. What has signed leaves in service is kept
// on for their revocation lists (list-signer.ts), before it goes from where it was.

import { readOf, type Change, type Attribution } from '#domain/core/change.ts'
import { isKept, type IssuerRow } from '#domain/ca/issuer.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { readBook, type AuthorityParts, type AuthorityState } from './authority-state.ts'
import { issuerEntry, type IssuerBook } from './issuer-book.ts'
import { keepKey, type MadeCa } from './ca-signer.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'
import { keepForLists, signsLists } from './list-signer.ts'
import { keepResponder } from './responder.ts'

export type Story = {
  readonly why: string
  readonly by: Attribution
  /** Null: ordered by an operator. */
  readonly fencingToken: FencingToken | null
  /** Also instead of the issuers in the memory of other replicas, which then make new ones. */
  readonly everywhere: boolean
}

export type SucceedingParts = Pick<AuthorityParts, 'core' | 'custody' | 'options'>

/**
 * `made` has its key kept already; where replicas share keys, this runs exclusively. After `lost-race` the book has been read
 * again, and nothing else has changed.
 */
export const takeIntoService = async (
  parts: SucceedingParts,
  state: AuthorityState,
  made: MadeCa,
  story: Story,
): Promise<'in-service' | 'lost-race'> => {
  const change = succession(parts, state, made.row, story)
  const outcome = await (story.fencingToken === null
    ? parts.core.store.commit(change)
    : parts.core.store.commit(change, story.fencingToken))
  await readBook(parts, state)
  if (outcome === 'lost-race') return outcome
  parts.core.feed.publish(outcome)
  if (made.row.role === 'issuing') {
    // Before it signs anything, where its key can be used.
    await keepResponder(parts, made)
    state.signer = made
  }
  if (made.row.custody === 'memory' && parts.core.store.sealedKeys !== null) return 'in-service'
  await parts.custody.refresh()
  // Who is alone here may have been forgotten by the store meanwhile, and its key taken for one that nothing names.
  if (!parts.custody.has({ role: made.row.role, id: made.row.id })) await keepKey(parts.custody, made)
  await dropOrphans(parts.custody, state.book)
  return 'in-service'
}

const succession = (
  parts: SucceedingParts,
  { book, signer }: AuthorityState,
  made: IssuerRow,
  { why, by, everywhere }: Story,
): Change => {
  const nowMs = parts.core.clock.nowMs()
  const takesThePlaceOf = (other: IssuerRow): boolean => {
    if (parts.core.store.sealedKeys === null) return takesThePlace(made, other)
    // The issuers in memory of other replicas go on signing until they are asked not to.
    if (made.custody === 'memory')
      return other.custody === 'memory' && other.role === 'issuing' && (everywhere || other.id === signer?.row.id)
    return other.role === made.role && isKept(other)
  }
  const replaced = book.rows.filter(({ value }) => value.retiredAtMs === null && takesThePlaceOf(value))
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

/** With an issuing key in a file the domain CA has no task. */
const takesThePlace = (made: IssuerRow, other: IssuerRow): boolean =>
  other.role === made.role || (made.role === 'issuing' && isKept(made) && other.role === 'domain-ca')

/**
 * Removes keys without a task. A key whose row says that it has ended is dropped. A key without a row is set aside: this database
 * may be older than its keys, and when the newer one is put back the key is taken back. Roots stay in any case. Where replicas
 * share keys this runs exclusively, so that no plane is about to commit a row that names one.
 */
export const dropOrphans = async (custody: KeyCustody, book: IssuerBook): Promise<void> => {
  for (const name of custody.asideNames()) {
    const row = book.find(name.id)?.value ?? null
    if (row !== null && row.compromisedAtMs === null && isInUse(name, row)) await custody.takeBack(name)
  }
  for (const name of custody.names()) {
    const row = book.find(name.id)?.value ?? null
    if (!isOrphan(name, row)) continue
    if (name.role === 'issuing' && row !== null && signsLists(row)) await keepForLists(custody, name.id)
    if (row === null || (name.role === 'retired' && row.retiredAtMs === null)) await custody.setAside(name)
    else await custody.drop(name)
  }
}

/** Responders and server certificates are not set aside here; other code keeps them. */
const isInUse = (name: KeyName, row: IssuerRow): boolean =>
  (name.role === 'issuing' || name.role === 'domain-ca' || name.role === 'retired') && !isOrphan(name, row)

const isOrphan = ({ role }: KeyName, row: IssuerRow | null): boolean => {
  switch (role) {
    case 'issuing':
    case 'domain-ca':
      return row === null || row.retiredAtMs !== null
    case 'retired':
      return row === null || row.retiredAtMs === null || !signsLists(row)
    default:
      return false
  }
}
