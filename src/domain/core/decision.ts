// What every decision has in common: on whose behalf it is made, and the shape of a yes.

import { redactSecrets } from '#platform/secret-shapes.ts'
import type { Change } from './change.ts'
import type { EntryDraft } from './journal-entry.ts'

/** On whose behalf something is decided; goes into every journal entry. */
export type Attribution = {
  /** As `actorOf` names it, or `system:PART`. */
  readonly actor: string
  readonly source: string | null
  readonly correlation: string | null
}

export type Decided = { readonly kind: 'decided'; readonly change: Change }

export const decided = (change: Change): Decided => ({ kind: 'decided', change })

/** A draft with everything left out that the caller does not name. */
export const entry = (
  by: Attribution,
  atMs: number,
  type: EntryDraft['type'],
  about: Partial<Pick<EntryDraft, 'node' | 'epoch' | 'token' | 'issuer' | 'serial'>>,
  body: EntryDraft['body'] = {},
): EntryDraft => ({
  type,
  atMs,
  actor: by.actor,
  source: by.source,
  node: about.node ?? null,
  epoch: about.epoch ?? null,
  token: about.token ?? null,
  issuer: about.issuer ?? null,
  serial: about.serial ?? null,
  correlation: by.correlation,
  body,
})

/** Free text from outside is cut before it becomes part of a record, and no secret somebody put into it is kept. */
export const boundedText = (text: string, length = 256): string => {
  // Control characters would let a node forge lines in whatever prints the journal.
  const clean = redactSecrets(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
  // A cut may leave half of a surrogate pair, which PostgreSQL cannot keep.
  return (clean.length <= length ? clean : clean.slice(0, length - 1) + '…').toWellFormed()
}
