// Is this store the one its nodes have seen? An older copy may have forgotten revocations, so nothing is issued from it until an
// operator has looked. Certificates that are issued already stay valid: stopping a fleet would help no one.

import { alertKey, type Alert } from '#domain/alerts/alert.ts'
import { withAlert, type AlertFacts } from '#domain/alerts/alert-decisions.ts'
import { wantedAlert, type WantedAlert } from '#domain/alerts/alert-kinds.ts'
import { readOf, type Row, boundedText, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { EntryBody, EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { SeenHead, Sighting } from './sighting.ts'

export type Continuity = {
  readonly lineage: number
  readonly doubt: Doubt | null
}

/** What a sighting shows that does not fit our journal. */
export type Loss = {
  /** `lineage`: confirmed more often than we know of. `missing`: a place we do not have. `other`: another entry is there. */
  readonly why: 'lineage' | 'missing' | 'other'
  readonly lineage: number
  readonly chain: string
  readonly sequence: number
  /** Hex, of the entry that was seen there; absent in rows of 0.2.0. */
  readonly hash?: string
  /** Our newest place in that chain; null: it is not here at all. */
  readonly ours: number | null
}

export type Doubt = Loss & {
  readonly sinceMs: number
  /** Who showed it first: a node, or the name of the plane that noticed it itself. */
  readonly node: NodeId
  /** Absent in rows of 0.2.0, whose doubts all came from nodes. */
  readonly witness?: Witness
  /** Of the newest entry from before any plane was started that runs now; null: not known. */
  readonly newestEntryMs: number | null
}

/** A node showed a signed sighting, or a plane missed entries that it had read or written itself. */
export type Witness = 'node' | 'plane'

/** One head of a sighting, and what our journal has there. */
export type Place = {
  readonly head: SeenHead
  /** Null: the store does not have this place. */
  readonly hash: string | null
  readonly newest: number | null
}

/** Null: our journal holds all of it, or it was confirmed away. */
export const lossOf = (seen: Sighting, lineage: number, places: readonly Place[]): Loss | null => {
  if (seen.lineage < lineage) return null
  const found = (place: Place, why: Loss['why']): Loss => ({
    why,
    lineage: seen.lineage,
    chain: place.head.chain,
    sequence: place.head.sequence,
    hash: place.head.hash,
    ours: place.newest,
  })
  const furthest = places.toSorted((one, other) => other.head.sequence - one.head.sequence)
  const first = furthest[0]
  if (first === undefined) return null
  if (seen.lineage > lineage) return found(first, 'lineage')
  const other = furthest.find(({ head, hash }) => hash !== null && hash !== head.hash)
  if (other !== undefined) return found(other, 'other')
  // What was pruned from the front is missing too, and is behind what we have.
  const missing = furthest.find(
    ({ head, hash, newest }) => hash === null && (newest === null || head.sequence > newest),
  )
  return missing === undefined ? null : found(missing, 'missing')
}

/** By a plane that knows itself what its store has lost. Soon: another plane, or an operator, may settle it. */
export const storeInDoubt = (why: string): Refusal => ({ ...refuse('STORE_IN_DOUBT', why), retryAfterMs: 10_000 })

/** In a sentence, for operators of the plane; null: all is well. */
export const doubtInWords = ({ continuity }: DomainSettings): string | null =>
  continuity.doubt === null ? null : `nothing is issued: ${reasonForDoubt(continuity.doubt)}`

/** In a sentence, for alerts and for people. */
export const reasonForDoubt = ({
  node,
  witness,
  why,
  chain,
  sequence,
  ours,
  lineage,
}: Loss & Pick<Doubt, 'node' | 'witness'>): string => {
  const who = `${witness ?? 'node'} ${node}`
  const have = ours === null ? 'it is not in this store' : `this store ends at ${ours}`
  switch (why) {
    case 'lineage':
      return `the store may be an older copy: ${who} has seen one that was confirmed before (lineage ${lineage})`
    case 'missing':
      return `the store may be an older copy: ${who} has seen entry ${sequence} of chain ${chain}, and ${have}`
    case 'other':
      return `the store may be an older copy: ${who} has seen another entry ${sequence} of chain ${chain}`
  }
}

export type DoubtFacts = {
  readonly domain: Row<DomainSettings>
  readonly loss: Loss
  /** The lineage it was found by: an operator may have confirmed the store meanwhile. */
  readonly judgedBy: number
  /** By name, where the witness is a plane. */
  readonly node: NodeId
  readonly witness: Witness
  readonly newestEntryMs: number | null
  /** The last raising of the alert for it. */
  readonly alert: Row<Alert> | null
  readonly newAlertId: string
  readonly by: Attribution
  readonly nowMs: number
}

export const decideDoubt = (facts: DoubtFacts): Decided | Unchanged => {
  const { domain, loss, judgedBy, node, witness, nowMs } = facts
  const { continuity } = domain.value
  if (continuity.lineage !== judgedBy) return { kind: 'unchanged' }
  if (continuity.doubt !== null && !isWorse(loss, continuity.doubt)) return { kind: 'unchanged' }
  const begun = continuity.doubt ?? { sinceMs: nowMs, node, witness, newestEntryMs: facts.newestEntryMs }
  const doubt: Doubt = {
    ...loss,
    sinceMs: begun.sinceMs,
    node: begun.node,
    witness: begun.witness ?? 'node',
    newestEntryMs: begun.newestEntryMs,
  }
  const { sinceMs } = doubt
  const wanted = wantedAlert('store_in_doubt', domain.value.name, reasonForDoubt(doubt), { sinceMs })
  const body = { ...bodyOf(loss), lineage: continuity.lineage, ...(witness === 'plane' && { plane: node }) }
  const change = {
    reads: [readOf('domain', 'domain', domain)],
    writes: [{ put: 'domain', value: { ...domain.value, continuity: { ...continuity, doubt } } }],
    entries: [entry(facts.by, nowMs, 'store.doubted', witness === 'node' ? { node } : {}, body)],
  } as const
  return decided(withAlert(change, alertFacts(facts, wanted)))
}

/** The confirmation has to go beyond every lineage that was seen, and operators want to know how much is missing. */
export const isWorse = (loss: Loss, doubt: Doubt): boolean =>
  loss.lineage > doubt.lineage ||
  (loss.lineage === doubt.lineage && loss.chain === doubt.chain && loss.sequence > doubt.sequence)

export type ConfirmFacts = Pick<DoubtFacts, 'domain' | 'alert' | 'newAlertId' | 'by' | 'nowMs'> & {
  readonly reason: string
}

/** From here on the store is used as it is: sightings of earlier lineages no longer count against it. */
export const decideConfirmStore = (
  facts: ConfirmFacts,
): (Decided & { readonly doubt: Doubt; readonly lineage: number }) | Refusal => {
  const { domain, by, nowMs } = facts
  const { continuity } = domain.value
  const { doubt } = continuity
  if (doubt === null) return refuse('STORE_NOT_IN_DOUBT')
  const lineage = Math.max(continuity.lineage, doubt.lineage) + 1
  const body = {
    ...bodyOf(doubt),
    lineage,
    doubted_by: doubt.node,
    doubted_for_ms: Math.max(0, nowMs - doubt.sinceMs),
    reason: boundedText(facts.reason),
  }
  const change = {
    reads: [readOf('domain', 'domain', domain)],
    writes: [{ put: 'domain', value: { ...domain.value, continuity: { lineage, doubt: null } } }],
    entries: [entry(by, nowMs, 'store.confirmed', {}, body)],
  } as const
  return { ...decided(withAlert(change, alertFacts(facts, null))), doubt, lineage }
}

const bodyOf = ({ why, chain, sequence, hash, ours, lineage }: Loss): EntryBody => ({
  why,
  chain,
  seen: sequence,
  ...(hash !== undefined && { hash }),
  ours,
  seen_lineage: lineage,
})

export const doubtAlertKey = ({ name }: DomainSettings): string => alertKey({ kind: 'store_in_doubt', subject: name })

const alertFacts = (
  { alert, newAlertId: newId, by, nowMs }: Pick<DoubtFacts, 'alert' | 'newAlertId' | 'by' | 'nowMs'>,
  wanted: WantedAlert | null,
): AlertFacts => ({ wanted, existing: alert, reliedOn: [], newId, by, nowMs })

// What was taken away while a store was in doubt. If the newer store is put back, it knows nothing of it.

const verbs: Partial<Readonly<Record<EntryType, (entry: JournalEntry) => string>>> = {
  'host.revoked': ({ node }) => `node ${node} revoked`,
  'node.quarantined': ({ node }) => `node ${node} quarantined`,
  'node.recovery_denied': ({ node }) => `recovery of ${node} denied`,
  'enrollment_token.revoked': ({ token }) => `token ${token} revoked`,
  'operator_key.revoked': ({ body }) => `operator key ${String(body['key_id'])} revoked`,
  'issuance.halted': () => 'issuance halted',
  'ca.compromised': ({ issuer }) => `authority ${issuer} withdrawn`,
}

/** In words, for those entries that took something away. */
export const takenAway = (entries: readonly JournalEntry[]): readonly string[] =>
  entries.flatMap((entry) => {
    const say = verbs[entry.type]
    return say === undefined ? [] : [boundedText(say(entry), 96)]
  })
