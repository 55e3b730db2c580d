// What a commit means for channels and presence, in the turn it is committed here, or received from another replica.

import type { EntryType } from '#domain/core/journal-entry.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import type { CutCounts } from '#plane/sessions/cut-elsewhere.ts'
import type { RetryTimes } from '#plane/limits/retry-times.ts'
import { cutDenied, limitToCertificate } from './cut-sessions.ts'
import type { Presence } from '#plane/liveness/presence.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Updates } from './updates.ts'

export type FollowingParts = {
  readonly sessions: SessionRegistry
  readonly presence: Presence
  readonly updates: Updates
  readonly cuts: Pick<CutCounts, 'count'>
  readonly retryTimes: RetryTimes
}

export const followCommits = ({
  sessions,
  presence,
  updates,
  cuts,
  retryTimes,
}: FollowingParts): ((committed: Committed) => void) => {
  const cut = cutDenied(sessions, retryTimes)
  return (committed) => {
    cuts.count(committed, cut(committed))
    followNodes(sessions, presence, committed)
    followConfiguration(updates, committed)
  }
}

/** Whom it concerns is looked at, and sent what it lacks. */
const followConfiguration = (updates: Updates, { writes, entries }: Committed): void => {
  if (writes.some(concernsEverybody) || entries.some(({ entry }) => entry.type === 'domain.changed')) {
    return updates.changed()
  }
  for (const write of writes) if (write.put === 'vcluster') updates.changedIn(write.value.name)
  // Nodes are written all day; only these changes change their configuration.
  for (const { entry } of entries) if (assigning.has(entry.type) && entry.node !== null) updates.changedFor(entry.node)
}

const concernsEverybody = (write: Committed['writes'][number]): boolean =>
  write.put === 'profile' ||
  write.put === 'outside-issuer' ||
  write.put === 'issuer-migration' ||
  (write.put === 'issuer' && (write.value.role === 'root' || write.value.compromisedAtMs !== null))

const assigning: ReadonlySet<EntryType> = new Set([
  'node.assigned',
  'node.unassigned',
  'node.moved',
  'node.names_added',
  'node.names_removed',
])

/** A node that was just confirmed or has just returned is here, also before its channel opens. */
const followNodes = (sessions: SessionRegistry, presence: Presence, { origin, writes, entries }: Committed): void => {
  for (const write of writes) {
    if (write.put !== 'node') continue
    // A row from another replica may be newer than the commit it is published with. The commit that took its certificates away
    // also denies them, is published next, cuts the channel for the right reason, and counts it for the receipt.
    const denialFollows = origin === 'elsewhere' && slotsOf(write.value) === null
    for (const session of denialFollows ? [] : sessions.of(write.value.id)) {
      // What it may do was settled when it opened: a node that was released opens another.
      if (session.principal.evidenceOnly && write.value.membership.kind !== 'quarantined') {
        session.end('RELEASED', 'its quarantine is over: connect again')
      } else limitToCertificate(session, write.value)
    }
    if (write.value.membership.kind !== 'active') presence.forget(write.value.id)
  }
  for (const { entry } of entries) {
    const present = entry.type === 'node.confirmed' || entry.type === 'node.returned'
    if (present && entry.node !== null && sessions.of(entry.node).length === 0) presence.lastHere(entry.node)
  }
}
