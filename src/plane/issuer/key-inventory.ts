// Which keys a domain cannot do without, and which of them are gone. A plane never makes a key in the place of a lost one
// by itself: machines out there trust the lost one, and a backup may still have it.

import type { IssuerRecord } from '#domain/issuer-record.ts'
import { sealedNameOf, type KeyName } from './key-custody.ts'
import { StartRefused } from './start-refused.ts'

/** What `muster ca replace-lost` makes anew. */
export const replaceableKeys = ['issuing', 'recovery', 'statement', 'bearer', 'journal'] as const
export type ReplaceableKey = (typeof replaceableKeys)[number]

export type LostKey = { readonly role: ReplaceableKey | 'root' | 'domain-ca'; readonly id: string | null }

export type InventoryFacts = {
  readonly issuers: readonly Pick<
    IssuerRecord,
    'id' | 'role' | 'custody' | 'notBeforeMs' | 'notAfterMs' | 'retiredAtMs'
  >[]
  readonly names: readonly KeyName[]
  readonly issuerKey: 'file' | 'memory'
  readonly nowMs: number
}

/** A root on record as `offline` is no loss. An authority that has ended or retired needs no key to go on. */
export const lostKeys = ({ issuers, names, issuerKey, nowMs }: InventoryFacts): readonly LostKey[] => {
  const held = new Set(names.map(sealedNameOf))
  const serving = (role: IssuerRecord['role']) =>
    issuers
      .filter((one) => one.role === role && one.custody === 'file' && one.retiredAtMs === null)
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
  ]
}

const lostKeyFile = ({ role, id }: LostKey): string => (role === 'journal' ? 'journal.key' : `${role}.${id ?? '*'}.key`)

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

/**
 * What keeps a plane from starting. It starts with an alert instead where the key is not needed at once: a root; a recovery
 * root while its listener has a certificate; an issuing CA below an offline root while the plane has a server certificate,
 * because the ceremony that makes a new one needs a running plane.
 */
export const refuseLostKeys = (facts: InventoryFacts, replacing: ReplaceableKey | null): void => {
  // It is made without any other key, so that after the loss of several it can be the first.
  if (replacing === 'journal') return
  const presents = (role: 'server' | 'recovery-server', id: string | null): boolean =>
    facts.names.some((name) => name.role === role && name.id.startsWith(`${id}.`))
  const rootIsHere = facts.names.some((name) => name.role === 'root')
  const [needed] = lostKeys(facts).filter(({ role, id }) => {
    if (role === 'root' || role === replacing) return false
    if (role === 'domain-ca') return replacing !== 'issuing'
    if (role === 'issuing') return rootIsHere || !presents('server', id)
    return role !== 'recovery' || !presents('recovery-server', id)
  })
  if (needed !== undefined) throw keyMissing(needed)
}

export const keyMissing = (lost: LostKey): StartRefused => {
  const role = lost.role === 'domain-ca' ? 'issuing' : lost.role
  return new StartRefused(
    'KEY_MISSING',
    `the key ${lostKeyFile(lost)} of this domain is gone; nothing was made in its place`,
    `Put it back from a backup of the same domain: into keys/ of the data folder, or with PostgreSQL restore the table sealed_key. If muster.db was restored, restore keys/ of the same backup. Only if no copy exists: muster ca replace-lost ${role}`,
  )
}
