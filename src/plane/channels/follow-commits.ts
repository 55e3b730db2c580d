// What a commit means for channels and presence, in the turn it is committed.

import type { Committed, Store } from '#plane/store/store.ts'
import type { Log } from '#platform/log.ts'
import { bringUpToDate, type ChannelDeps } from './channel-server.ts'
import { cutDenied } from './cut-sessions.ts'
import type { Presence } from './presence.ts'
import type { SessionRegistry } from './session-registry.ts'

export type FollowDeps = Pick<ChannelDeps, 'issuer' | 'nodeUrl'> & {
  readonly store: Store
  readonly sessions: SessionRegistry
  readonly presence: Presence
  readonly log: Log
}

export const followCommits = (deps: FollowDeps): ((committed: Committed) => void) => {
  const cut = cutDenied(deps.sessions)
  return (committed) => {
    cut(committed)
    followPresence(deps, committed)
    if (committed.writes.some(changesConfiguration)) pushToAll(deps)
  }
}

const changesConfiguration = (write: Committed['writes'][number]): boolean =>
  write.put === 'profile' || write.put === 'domain' || (write.put === 'issuer' && write.value.role === 'root')

/** A node that was just confirmed or has just returned is here, also before its channel opens. */
const followPresence = ({ presence, sessions }: FollowDeps, { writes, entries }: Committed): void => {
  for (const write of writes) {
    if (write.put === 'node' && write.value.membership.kind !== 'active') presence.forget(write.value.id)
  }
  for (const { entry } of entries) {
    const present = entry.type === 'node.confirmed' || entry.type === 'node.returned'
    if (present && entry.node !== null && sessions.of(entry.node).length === 0) presence.lastHere(entry.node)
  }
}

/** Revision 0 is one no configuration has: everybody is sent what holds now. */
const pushToAll = (deps: FollowDeps): void => {
  for (const session of deps.sessions.all()) {
    bringUpToDate(deps, session, 0, 0).catch((error: unknown) =>
      deps.log.error({ err: error, node: session.principal.id }, 'a configuration could not be sent'),
    )
  }
}
