// Which keys a domain needs, and which of them are lost. A plane never replaces a lost key on its own: machines trust the lost
// one, and a backup may still have it.

import { isKept, type IssuerRow } from '#domain/ca/issuer.ts'
import { sealedNameOf, type KeyName } from './key-custody.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'

/** What `muster ca replace-lost` makes anew. */
export const replaceableKeys = ['issuing', 'recovery', 'statement', 'bearer', 'journal'] as const
export type ReplaceableKey = (typeof replaceableKeys)[number]

export type LostKey = { readonly role: ReplaceableKey | 'root' | 'domain-ca'; readonly id: string | null }

export type InventoryFacts = {
  readonly issuers: readonly Pick<IssuerRow, 'id' | 'role' | 'custody' | 'notBeforeMs' | 'notAfterMs' | 'retiredAtMs'>[]
  readonly names: readonly KeyName[]
  /** The key that signs heads of the journal; `unverifiable`: with its public half, so that nothing verifies what it signed. */
  readonly headKey: 'here' | 'lost' | 'unverifiable'
  readonly issuerKey: 'file' | 'memory'
  readonly nowMs: number
}

/** A root whose row says `offline` is no loss. An authority that has ended or retired needs no key to go on. */
export const lostKeys = ({ issuers, names, headKey, issuerKey, nowMs }: InventoryFacts): readonly LostKey[] => {
  const held = new Set(names.map(sealedNameOf))
  const serving = (role: IssuerRow['role']) =>
    issuers
      .filter((one) => one.role === role && isKept(one) && one.retiredAtMs === null)
      .filter(({ notAfterMs }) => notAfterMs > nowMs)
      .sort((a, b) => b.notBeforeMs - a.notBeforeMs)
  const gone = (role: 'root' | 'domain-ca' | 'issuing', id: string): LostKey[] =>
    held.has(`${role}/${id}`) ? [] : [{ role, id }]
  // Lists of an issuer that is about to retire may be signed under either name.
  const signing = serving(issuerKey === 'memory' ? 'domain-ca' : 'issuing').slice(0, 1)
  const recovery = serving('recovery')
  const hadRecovery = issuers.some(({ role }) => role === 'recovery')
  const secrets = (['statement', 'bearer'] as const).filter((role) => !names.some((name) => name.role === role))
  return [
    ...serving('root').flatMap(({ id }) => gone('root', id)),
    ...signing.flatMap(({ id, role }) => gone(role as 'domain-ca' | 'issuing', id)),
    ...recovery
      .slice(0, recovery.some(({ id }) => held.has(`recovery/${id}`)) ? 0 : 1)
      .map(({ id }) => ({ role: 'recovery', id }) as const),
    // Made together with the first recovery root: where there is one, they were lost.
    ...(hadRecovery ? secrets.map((role) => ({ role, id: null })) : []),
    ...(headKey === 'here' ? [] : [{ role: 'journal', id: null } as const]),
  ]
}

/** `journal.key`, `issuing.ID.key`; of a secret whose id no row names: `statement.*.key`. */
export const lostKeyFile = ({ role, id }: LostKey): string =>
  role === 'journal' ? 'journal.key' : `${role}.${id ?? '*'}.key`

/** One sentence for operators; it also says what to do. */
export const lostKeyText = (lost: LostKey): string => {
  const file = lostKeyFile(lost)
  switch (lost.role) {
    case 'root':
      return `The key of the root ${lost.id} is on record here and is gone: no CA can be made below it. Put keys/${file} back from a backup and start the plane again`
    case 'recovery':
      return `The key of the recovery root ${lost.id}, which machines trust, is gone: once the recovery listener's certificate ends, none can recover. Put keys/${file} back from a backup and start the plane again; only if there is none: muster ca replace-lost recovery`
    case 'issuing':
      return `The key of the issuing CA ${lost.id} is gone: nothing can be enrolled or renewed. Put keys/${file} back from a backup and start the plane again; only if there is none: muster ca request, then muster ca sign where the root is, then muster ca import`
    default:
      return `keys/${file} is on record and is gone. Put it back from a backup and start the plane again`
  }
}

/** No host pins a task signer, so it keeps no plane from starting; and operators say when another one takes its place. */
export const lostSignerText = (key: string): string =>
  `The key of the task signer ${key} is gone: no task can be sent. Put keys/task-signer.${key}.key back from a backup (with PostgreSQL the row task-signer/${key} of the table sealed_key) and start the plane again; only if there is none: muster signer rotate --now`

/**
 * All keys that are gone, where one of them keeps a plane from starting; else none. It starts with an alert instead where
 * none is needed at once: a root; a recovery root while its listener has a certificate; an issuing CA below an offline root
 * while the plane has a server certificate, because the ceremony that makes a new one needs a running plane.
 */
export const refuseLostKeys = (facts: InventoryFacts, replacing: readonly ReplaceableKey[]): void => {
  const presents = (role: 'server' | 'recovery-server', id: string | null): boolean =>
    facts.names.some((name) => name.role === role && name.id.startsWith(`${id}.`))
  const rootIsHere = facts.names.some((name) => name.role === 'root')
  const lost = lostKeys(facts)
  const isNeeded = ({ role, id }: LostKey): boolean => {
    if (role === 'journal' && facts.headKey === 'unverifiable') return true
    if (role === 'root' || replacing.includes(replacedBy(role))) return false
    if (role === 'issuing') return rootIsHere || !presents('server', id)
    return role !== 'recovery' || !presents('recovery-server', id)
  }
  if (!lost.some(isNeeded)) return
  const isEmpty = facts.names.length === 0 && facts.headKey !== 'here'
  const isWhole = isEmpty || (lost.length > 1 && lost.some(({ role }) => role === 'root'))
  if (isWhole) throw keysGone(lost, isEmpty)
  throw facts.headKey === 'unverifiable' ? unverifiable() : keysMissing(lost, rootIsHere)
}

/** What a person names to have it made anew. */
export const replacedBy = (role: Exclude<LostKey['role'], 'root'>): ReplaceableKey =>
  role === 'domain-ca' ? 'issuing' : role

/** One that is found to be gone although the start did not miss it. */
export const keyMissing = (lost: LostKey): StoreRefused => keysMissing([lost], true)

const keysMissing = (lost: readonly LostKey[], rootIsHere: boolean): StoreRefused => {
  const [those, their, them] = lost.length === 1 ? ['the key', 'its', 'it'] : ['the keys', 'their', 'them']
  const are = lost.length === 1 ? 'is' : 'are'
  const roles = lost.flatMap(({ role }) => (role === 'root' ? [] : [replacedBy(role)]))
  // Only its root can sign an issuing CA, and where that is offline the ceremony does.
  const made = rootIsHere ? roles : roles.filter((role) => role !== 'issuing')
  return new StoreRefused(
    'KEY_MISSING',
    `${those} ${lost.map(lostKeyFile).join(', ')} of this domain ${are} gone; nothing was made in ${their} place`,
    `Put ${them} back from a backup of the same domain: into keys/ of the data folder, or with PostgreSQL restore the table sealed_key. If muster.db was restored, restore keys/ of the same backup.${
      made.length === 0 ? '' : ` Only if no copy exists: muster ca replace-lost ${made.join(' ')}`
    }${made.length === roles.length ? '' : ` The root is offline: an issuing key cannot be made here`}`,
  )
}

/** More than a key or two: no command could make that domain again, and one that tried would harm what a restore brings back. */
const keysGone = (lost: readonly LostKey[], isEmpty: boolean): StoreRefused => {
  const root = lost.some(({ role }) => role === 'root') ? ', among them the root' : ''
  return new StoreRefused(
    'KEY_MISSING',
    isEmpty
      ? `keys/ is missing or empty (${lost.length} keys on record${root}); nothing was made in their place`
      : `${lost.length} keys on record are gone from keys/${root}: ${lost.map(lostKeyFile).join(', ')}; nothing was made in their place`,
    'Is its disk mounted, is a restore unfinished? Restore keys/ as a whole (with PostgreSQL the table sealed_key), from a backup of the same domain',
  )
}

/** Nothing that the lost key has signed could be verified ever again, so no other key takes its place. */
const unverifiable = (): StoreRefused =>
  new StoreRefused(
    'KEY_MISSING',
    'with journal.key its public half journal.KEY_ID.key is gone: with a new key the journal could never be verified again; nothing was changed',
    'Put one of the two back from a backup of the same domain: into keys/ of the data folder, or with PostgreSQL the rows journal/head and journal/KEY_ID of the table sealed_key',
  )
