// Which changes cut somebody off. They are committed when nothing else can be: on a disk that is full but for the reserve
// of the store.

import type { Change, Write } from './change.ts'
import type { EntryType } from './journal-entry.ts'

const cutOffEntries: ReadonlySet<EntryType> = new Set<EntryType>([
  'host.revoked',
  'node.quarantined',
  'issuance.halted',
  'ca.compromised',
  // What was signed by a withdrawn authority is not presented any more, so a withdrawal needs a new one.
  'server_certificate.issued',
])

/** A revocation, a quarantine, a halt of issuance, the withdrawal of an authority with the server certificate it makes necessary, or the progress of a receipt of one. */
export const isCutOff = ({ entries, writes }: Pick<Change, 'entries' | 'writes'>): boolean =>
  entries.some(({ type }) => cutOffEntries.has(type)) || (writes.length > 0 && writes.every(isReceipt))

const isReceipt = ({ put }: Write): boolean => put === 'receipt'
