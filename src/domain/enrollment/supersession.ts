// Another caller asks for an active identity (ruling 3): whether its holder keeps it, and what is written down of a caller that
// got it by its hardware alone, because the holder was silent. Addresses are known to many, and a holder may be silent because
// it was made so: an operator looks at each of these in which a channel went silent.

import type { Alert } from '#domain/alerts/alert.ts'
import type { AlertFacts } from '#domain/alerts/alert-decisions.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { type Row, boundedText } from '#domain/core/change.ts'
import { holderWords, type HolderFacts } from '#domain/identity/duplicate.ts'
import type { Admission, EnrollFacts, EnrollVerdict } from './enrollment.ts'
import { hasCondition } from '#domain/core/conditions.ts'
import { judgeIdentityProof } from './identity-proof.ts'
import { durationWords } from '#domain/core/in-words.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { EntryBody } from '#domain/core/journal-entry.ts'

/**
 * Another key asks for an active identity. What keeps it with its holder: a refusal, or that the holder has to be probed
 * first. Null: the caller takes the place.
 */
export const keptByHolder = (
  facts: EnrollFacts,
  node: Row<Node>,
): Refusal | Extract<EnrollVerdict, { kind: 'probe' }> | null => {
  const { credential, profile } = facts
  if (credential.method === 'token' && credential.token.value.replace) return null
  switch (profile.value.onActiveConflict) {
    case 'prove':
      return provesRecoveryKey(facts, node.value) ? null : keptUnlessProven(facts, node.value)
    case 'reject':
      return refuse('ALREADY_ACTIVE', 'it becomes free when the node has been away for the grace')
    case 'probe':
      if (facts.probe === 'not-tried') return { kind: 'probe', node }
      if (facts.probe === 'answered') {
        return refuse('ALREADY_ACTIVE', 'the machine that holds this identity answered just now')
      }
      return hasComeBack(facts) ? null : silentForTooShort(profile.value, facts.probe.silentMs)
  }
}

/** By the key of its certificate (ruling 23). */
const keptUnlessProven = ({ proof }: EnrollFacts, node: Node): Refusal | null => {
  if (proof === null) return refuse('ALREADY_ACTIVE')
  switch (judgeIdentityProof(node, proof)) {
    case 'newest':
      // Both holders have this key: an operator says first which of them is the right one.
      return hasCondition(node, 'duplicate_identity') ? refuse('DUPLICATE_IDENTITY', 'it is not settled yet') : null
    case 'replaced-key':
    case 'old-counter':
      return refuse('DUPLICATE_IDENTITY', 'the key or the counter was replaced by newer ones')
    case 'nothing':
      return refuse('ALREADY_ACTIVE')
  }
}

/** Why an active identity was given to another key; null: by silence, or not at all. */
export const provenBy = ({
  facts,
  before,
  supersedes,
}: Admission): 'token' | 'recovery key' | 'certificate key' | null => {
  const { credential, profile } = facts
  if (supersedes !== 'an active identity') return null
  if (credential.method === 'token' && credential.token.value.replace) return 'token'
  if (profile.value.onActiveConflict !== 'prove') return null
  return provesRecoveryKey(facts, before) ? 'recovery key' : 'certificate key'
}

const longestPauseMs = 10_000

/** The caller is not kept waiting on its connection: it asks again, and the silence goes on counting meanwhile. */
const silentForTooShort = ({ probeSilenceMs }: Profile, silentMs: number): Refusal | null => {
  const leftMs = probeSilenceMs - silentMs
  if (leftMs <= 0) return null
  const said = `the machine that holds this identity does not answer; it keeps it for ${durationWords(leftMs)} more`
  return { ...refuse('BUSY', said), retryAfterMs: Math.ceil(Math.min(leftMs, longestPauseMs)) }
}

/** A caller that proves the recovery key is the one that registered it. */
const provesRecoveryKey = ({ recovery }: EnrollFacts, node: Node): boolean => {
  const registered = node.recovery?.credential
  return recovery?.kind === 'key' && registered?.kind === 'key' && recovery.spki === registered.spki
}

/** No token, no recovery key: the addresses and the silence were all there was. */
export const isByHardwareAlone = ({ facts, supersedes }: Admission): boolean =>
  supersedes === 'an active identity' && facts.credential.method === 'hardware'

type Left = Pick<Admission['facts'], 'probe' | 'holders'>

/**
 * A machine that restarts in order closes its channel and comes back as it was. There was no silence, so it does not wait and no
 * alert is raised. Where a channel went silent, or the two callers differ, an operator has to look.
 */
export const hasComeBack = (facts: Left): boolean => isClosed(facts) && isSameMachine(facts)

export const isAlarming = (admission: Admission): boolean =>
  isByHardwareAlone(admission) && !hasComeBack(admission.facts)

const isClosed = ({ probe }: Left): boolean => typeof probe !== 'string' && probe.closedByHolder === true

/** A fact that only one of them gives counts as a difference, too: a caller could leave out what would betray it. */
const isSameMachine = ({ holders }: Left): boolean => {
  if (holders === null || holders.holder === null) return false
  const { claimant, holder } = holders
  return (
    claimant.machine === holder.machine &&
    claimant.bmcSerial === holder.bmcSerial &&
    claimant.source !== null &&
    claimant.source === holder.source
  )
}

/** Both, for the journal: where they were, which process and machine, and which hardware they showed. */
export const bothHolders = ({ facts }: Admission): EntryBody => ({
  claimant: wordsOf(facts.holders?.claimant ?? null),
  holder: wordsOf(facts.holders?.holder ?? null),
  silent_ms: typeof facts.probe === 'string' ? null : Math.round(facts.probe.silentMs),
  closed_by_holder: isClosed(facts),
})

const wordsOf = (holder: HolderFacts | null, length = 256): string =>
  holder === null ? 'nothing was seen of it' : boundedText(holderWords(holder).join(', '), length)

/** `existing`: the alert of the last such supersession of this node. */
export const supersessionAlert = (
  { facts, before }: Admission,
  existing: Row<Alert> | null,
  newId: string,
): AlertFacts => {
  const { by, nowMs, holders, probe } = facts
  const evidence = {
    silentMs: typeof probe === 'string' ? null : probe.silentMs,
    closedByHolder: isClosed(facts),
    claimant: wordsOf(holders?.claimant ?? null),
    holder: wordsOf(holders?.holder ?? null),
  }
  const wanted = wantedAlert('superseded_by_hardware', before.id, evidence, { sinceMs: nowMs })
  return { wanted, existing, reliedOn: [], newId, by, nowMs }
}
