// Keeps agents up to date with the configuration and the roots they run under. One session at a time is looked at and
// sent what it lacks, so that two changes in a row arrive in that order; ten thousand of them let other work in between.

import type { Log } from '#platform/log.ts'
import type { Timers } from '#platform/timers.ts'
import type { Issuer } from '#plane/issuer/issuer.ts'
import type { Store } from '#plane/store/store.ts'
import { configurationOf, trustOf, type PlaneUrls } from './configuration.ts'
import type { Gate } from './gate.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Revisions, Session } from './session.ts'

export type UpdateDeps = {
  readonly store: Pick<Store, 'get'>
  readonly issuer: Pick<Issuer, 'roots'>
  readonly sessions: Pick<SessionRegistry, 'all'>
  readonly gate: Pick<Gate, 'serves' | 'opened'>
  readonly timers: Timers
  readonly log: Log
  readonly urls: () => PlaneUrls
}

export type Updates = {
  /** The agent has said what it has. */
  greeted(session: Session, has: Revisions): void
  /** Something was committed that may concern everybody. */
  changed(): void
}

const sessionsPerTurn = 32

export const openUpdates = (deps: UpdateDeps): Updates => {
  const outdated = new Set<Session>()
  let busy = false

  const work = async (): Promise<void> => {
    busy = true
    let looked = 0
    for (const session of outdated) {
      await deps.gate.opened()
      // Taken out first: what changes while it is looked at puts it in again, at the end.
      outdated.delete(session)
      await bringUpToDate(deps, session).catch((error: unknown) =>
        deps.log.error({ err: error, node: session.principal.id }, 'a configuration could not be sent'),
      )
      if (++looked % sessionsPerTurn === 0) await new Promise<void>((resolve) => deps.timers.soon(resolve))
    }
    busy = false
  }
  const start = (): void => {
    if (!busy) void work()
  }

  return {
    greeted(session, has) {
      session.revisions = has
      outdated.add(session)
      start()
    },
    changed() {
      for (const session of deps.sessions.all()) if (session.revisions !== null) outdated.add(session)
      start()
    },
  }
}

const bringUpToDate = async (deps: UpdateDeps, session: Session): Promise<void> => {
  const has = session.principal.evidenceOnly ? null : session.revisions
  const node = await deps.store.get('node', session.principal.id)
  const profile = node === null ? null : await deps.store.get('profile', node.value.profile)
  if (has === null || node === null || profile === null) return
  const config = configurationOf(node.value, profile.value, deps.urls())
  const trust = trustOf(deps.issuer)
  // Out of touch by now: what was read may be old.
  if (!deps.gate.serves()) return deps.gate.opened().then(() => bringUpToDate(deps, session))
  if (trust.revision !== has.trust) session.send({ type: 'trust', body: trust })
  if (config.revision !== has.config) session.send({ type: 'config', body: config })
  session.revisions = { config: config.revision, trust: trust.revision }
}
